package flow_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowtest"
)

// dissected is a TCP segment as tshark shows it, with what tshark thinks of it.
type dissected struct {
	seen
	stream   int
	repeated bool // retransmission of any kind, or out of order
	rttNs    int64
}

var dissectedFields = []string{
	"frame.number", "frame.time_epoch", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport",
	"tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.window_size_value", "tcp.payload", "tcp.stream",
	"tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.initial_rtt",
}

// dissect reads a capture with tshark. Without tshark it skips the test, or fails if no test may be skipped.
func dissect(t *testing.T, path string, fine bool) []dissected {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		if os.Getenv("CONNLAB_PRIVILEGED") == "1" {
			t.Fatal(err)
		}
		t.Skip("tshark is not installed")
	}
	arguments := []string{"-n", "-r", path, "-Y", "tcp", "-T", "fields", "-E", "separator=,", "-E", "occurrence=f"}
	for _, field := range dissectedFields {
		arguments = append(arguments, "-e", field)
	}
	var stderr bytes.Buffer
	command := exec.Command("tshark", arguments...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, stderr.Bytes())
	}
	var all []dissected
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		cells := map[string]string{}
		for i, cell := range strings.Split(lines.Text(), ",") {
			cells[dissectedFields[i]] = cell
		}
		whole := func(field string) uint64 {
			n, err := strconv.ParseUint(cells[field], 0, 64)
			if err != nil {
				t.Fatalf("tshark's %s: %v", field, err)
			}
			return n
		}
		end := func(which string) netip.AddrPort {
			address := cells["ip."+which] + cells["ipv6."+which]
			return netip.AddrPortFrom(netip.MustParseAddr(address), uint16(whole("tcp."+which+"port")))
		}
		data, err := hex.DecodeString(strings.ReplaceAll(cells["tcp.payload"], ":", ""))
		if err != nil {
			t.Fatalf("tshark's tcp.payload: %v", err)
		}
		flags := whole("tcp.flags")
		d := dissected{
			seen: seen{
				number: whole("frame.number"), ns: nanoseconds(t, cells["frame.time_epoch"]), fine: fine,
				from: end("src"), to: end("dst"),
				seq: uint32(whole("tcp.seq_raw")), ack: uint32(whole("tcp.ack_raw")), payload: int(whole("tcp.len")),
				fin: flags&1 != 0, syn: flags&2 != 0, rst: flags&4 != 0, acK: flags&16 != 0,
				window: uint16(whole("tcp.window_size_value")), start: string(data[:min(len(data), 6)]),
			},
			stream:   int(whole("tcp.stream")),
			repeated: cells["tcp.analysis.retransmission"]+cells["tcp.analysis.out_of_order"] != "",
		}
		if rtt := cells["tcp.analysis.initial_rtt"]; rtt != "" {
			d.rttNs = nanoseconds(t, rtt)
		}
		all = append(all, d)
	}
	return all
}

// nanoseconds reads a number of seconds with nine decimals.
func nanoseconds(t *testing.T, seconds string) int64 {
	t.Helper()
	ns, err := strconv.ParseInt(strings.Replace(seconds, ".", "", 1), 10, 64)
	if err != nil || len(seconds)-strings.IndexByte(seconds, '.') != 10 {
		t.Fatalf("tshark's time %q", seconds)
	}
	return ns
}

// captures are what tshark's reading is compared on: the lab's own captures, and
// all scripts together.
func captures(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	own, err := filepath.Glob("testdata/*.pcap")
	if err != nil || len(own) == 0 {
		t.Fatalf("no captures of the lab's own: %v", err)
	}
	for _, path := range own {
		all[filepath.Base(path)] = path
	}
	for _, ipv6 := range []bool{false, true} {
		segments, _ := scripted(ipv6)
		packets := flowtest.Packets(flowtest.Ethernet, segments)
		nano := flowtest.Formats[2]
		all[fmt.Sprintf("scripts, IPv6 %v", ipv6)] = flowtest.Save(t, flowtest.Capture(nano, flowtest.Ethernet.Type, 128, packets))
	}
	return all
}

func TestCapturesGiveTheFlowsOfTheOracle(t *testing.T) {
	for name, path := range captures(t) {
		t.Run(name, func(t *testing.T) { compareWithOracle(t, name, path, true) })
	}
}

// With tshark in gopacket's place, the oracle gives the same flows still.
func TestCapturesGiveTheFlowsOfTheOracleOnTsharksDecoding(t *testing.T) {
	for name, path := range captures(t) {
		t.Run(name, func(t *testing.T) {
			var segments []seen
			for _, d := range dissect(t, path, true) {
				segments = append(segments, d.seen)
			}
			compareWithConversations(t, name, path, assemble(segments))
		})
	}
}

// tshark's own account of each connection: which packets it has, its bytes, its
// handshake, what was sent more than once.
func TestTsharksStreamsAreTheFlows(t *testing.T) {
	own, err := filepath.Glob("testdata/*.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range own {
		t.Run(filepath.Base(path), func(t *testing.T) {
			flows, _ := reduceFile(t, path)
			type account struct {
				packets, bytes [2]uint64
				repeated       [2]uint32
				firstNs, rttNs int64
				lastNs         int64
			}
			var streams []account
			var clients []netip.AddrPort
			for _, d := range dissect(t, path, true) {
				if d.stream == len(streams) {
					streams = append(streams, account{firstNs: d.ns})
					clients = append(clients, d.from)
				}
				side, s := flow.Client, &streams[d.stream]
				if d.from != clients[d.stream] {
					side = flow.Server
				}
				s.packets[side]++
				s.bytes[side] += uint64(d.payload)
				s.lastNs = d.ns
				s.rttNs = max(s.rttNs, d.rttNs)
				if d.repeated && d.payload > 0 {
					s.repeated[side]++
				}
			}
			if len(flows) != len(streams) {
				t.Fatalf("%d flows, tshark has %d streams", len(flows), len(streams))
			}
			for i, f := range flows {
				got := account{
					packets:  [2]uint64{f.Client.Packets, f.Server.Packets},
					bytes:    [2]uint64{f.Client.PayloadBytes, f.Server.PayloadBytes},
					repeated: [2]uint32{f.Client.Retransmissions + f.Client.OutOfOrder, f.Server.Retransmissions + f.Server.OutOfOrder},
					firstNs:  f.FirstNs, lastNs: f.LastNs, rttNs: streams[i].rttNs,
				}
				if ns, known := f.HandshakeNs(); known && f.SYNs == 1 && f.SYNACKs == 1 {
					got.rttNs = ns
				}
				if got != streams[i] {
					t.Errorf("flow %d is %+v, tshark says %+v", i+1, got, streams[i])
				}
			}
		})
	}
}
