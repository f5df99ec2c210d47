package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"connlab/collector/internal/eventually"
	"connlab/collector/internal/netns"
	"connlab/collector/internal/schematest"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

// peer is the only other host of these tests; a namespace has one link.
var peer = sync.OnceValues(func() (*netns.Peer, error) { return netns.NewPeer() })

func TestTheCaptureHoldsTheKnownPackets(t *testing.T) {
	for _, test := range []struct {
		name, address string
		mode          Mode
		want          string
		// Bare acknowledgements: those of the handshake and of the server's FIN always come; of data, only when the
		// answer does not carry them.
		acknowledgementsMin, acknowledgementsMax int
	}{
		{"headers over IPv4", netns.Address, Headers, "C S,S SA,C PA,S PA,C FA,S FA", 2, 5},
		{"headers over IPv6", netns.AddressIPv6, Headers, "C S,S SA,C PA,S PA,C FA,S FA", 2, 5},
		{"handshakes over IPv4", netns.Address, Handshakes, "C S,S SA,C FA,S FA", 0, 0},
		{"handshakes over IPv6", netns.AddressIPv6, Handshakes, "C S,S SA,C FA,S FA", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := listen(t, test.address, "8080")
			report, packets := captureWhile(t, test.mode, 1<<30, func(string) { exchange(t, server) })
			got := flags(t, packets, 8080)
			bare := slices.DeleteFunc(slices.Clone(got), func(packet string) bool { return packet[2:] != "A" })
			rest := slices.DeleteFunc(slices.Clone(got), func(packet string) bool { return packet[2:] == "A" })
			if strings.Join(rest, ",") != test.want || len(bare) < test.acknowledgementsMin || len(bare) > test.acknowledgementsMax {
				t.Errorf("packets %q, want %q and acknowledgements", got, test.want)
			}
			if report.Reason != nil || report.Truncated || report.StartedUs == nil || *report.StartedUs >= report.EndedUs {
				t.Errorf("report %+v", report)
			}
			if *report.Captured != int64(len(packets)) || *report.DroppedByKernel != 0 || *report.Received < *report.Captured {
				t.Errorf("%d packets in the file, report %+v", len(packets), report.statistics)
			}
		})
	}
}

func TestACaptureEndsOnceTcpdumpHasAllPackets(t *testing.T) {
	server := listen(t, netns.Address, "8080")
	// Without tcpdump's word it would not end before the test's own time is over.
	report, packets := captureFor(t, t.TempDir(), Config{Mode: Headers, BytesMax: 1 << 30, settleMax: 24 * time.Hour}, func(string) {
		exchange(t, server)
	})
	if report.Reason != nil || *report.Captured != int64(len(packets)) || *report.Received != *report.Captured || len(packets) < 8 {
		t.Errorf("%d packets in the file, report %+v", len(packets), report)
	}
}

func TestTheFilesSizeIsBounded(t *testing.T) {
	server := listen(t, netns.Address, "8080")
	const bytesMax = 20_000
	report, _ := captureWhile(t, Headers, bytesMax, func(path string) {
		for range 300 {
			exchange(t, server)
		}
		waitForReport(t, path)
	})
	if !report.Truncated || report.Reason == nil || !strings.Contains(*report.Reason, "size limit of 20000 bytes") {
		t.Errorf("report %+v", report)
	}
	if *report.Bytes < bytesMax || !report.complete() {
		t.Errorf("%d bytes, %+v", *report.Bytes, report.statistics)
	}
}

func TestACaptureThatDiesIsTold(t *testing.T) {
	report, _ := captureWhile(t, Headers, 1<<30, func(path string) {
		killTcpdump(t, path)
		waitForReport(t, path)
	})
	if report.Reason == nil || !strings.Contains(*report.Reason, "ended by itself (signal: killed)") || report.Captured != nil {
		t.Errorf("report %+v", report)
	}
}

func TestAnInterfaceThatIsNotThereIsTold(t *testing.T) {
	netns.Require(t)
	folder := t.TempDir()
	report, err := Run(t.Context(), Config{
		Mode: Headers, Interface: "eth7", PacketsPath: filepath.Join(folder, "p"), ReportPath: filepath.Join(folder, "r"), BytesMax: 1,
	}, func() { t.Error("it did not listen") })
	if err != nil {
		t.Fatal(err)
	}
	if report.Reason == nil || !strings.Contains(*report.Reason, "eth7") || report.StartedUs != nil {
		t.Errorf("report %+v", report)
	}
}

func TestFilesThatExistStayAsTheyAre(t *testing.T) {
	for _, name := range []string{"packets", "report"} {
		folder := t.TempDir()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := Run(t.Context(), Config{
			Mode: Headers, Interface: "lo", PacketsPath: filepath.Join(folder, "packets"), ReportPath: filepath.Join(folder, "report"),
		}, func() { t.Error("it listened") })
		toldInReport := report.Reason != nil && strings.Contains(*report.Reason, "exists already")
		if toldInReport != (name == "packets") || errors.Is(err, os.ErrExist) != (name == "report") {
			t.Errorf("%s: error %v, report %+v", name, err, report)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
			t.Errorf("the %s are now %q (%v)", name, text, err)
		}
	}
}

func TestAFullDiskIsTold(t *testing.T) {
	server := listen(t, netns.Address, "8080")
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(disk, 0) }()
	report, packets := captureInto(t, disk, Headers, 1<<30, func(path string) {
		for range 20 {
			exchange(t, server)
		}
		eventually.Written(t, path, 1024) // so there are some of these packets
		_ = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 2<<20), 0o600)
		for range 100 { // about 90 kB
			exchange(t, server)
		}
	})
	want := fmt.Sprintf("%d of %d packets stand in", len(packets), *report.Captured)
	if report.Reason == nil || !strings.Contains(*report.Reason, want) || len(packets) == 0 {
		t.Errorf("report %+v, want %q", report, want)
	}
}

// waitForReport waits until a capture has ended by itself: its report is then filled.
func waitForReport(t *testing.T, packets string) {
	t.Helper()
	eventually.Written(t, filepath.Join(filepath.Dir(packets), "capture.json"), 1)
}

// killTcpdump kills the process that writes to path.
func killTcpdump(t *testing.T, path string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		arguments, err := os.ReadFile(line)
		if err != nil || !strings.HasPrefix(string(arguments), "tcpdump\x00") || !strings.Contains(string(arguments), path) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no tcpdump runs")
}

// captureWhile captures on the link to the peer while work runs; work gets the path of the packets.
func captureWhile(t *testing.T, mode Mode, bytesMax int64, work func(path string)) (Report, []gopacket.Packet) {
	t.Helper()
	return captureInto(t, t.TempDir(), mode, bytesMax, work)
}

func captureInto(t *testing.T, folder string, mode Mode, bytesMax int64, work func(path string)) (Report, []gopacket.Packet) {
	t.Helper()
	return captureFor(t, folder, Config{Mode: mode, BytesMax: bytesMax}, work)
}

func captureFor(t *testing.T, folder string, config Config, work func(path string)) (Report, []gopacket.Packet) {
	t.Helper()
	netns.Require(t)
	if _, err := peer(); err != nil {
		t.Fatal(err)
	}
	config.Interface = "eth0"
	config.PacketsPath, config.ReportPath = filepath.Join(folder, "capture.pcap"), filepath.Join(folder, "capture.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listening, ended := make(chan struct{}), make(chan error)
	go func() {
		_, err := Run(ctx, config, func() { close(listening) })
		ended <- err
	}()
	select {
	case <-listening:
	case <-time.After(eventually.Patience):
		t.Fatal("tcpdump does not listen")
	}
	work(config.PacketsPath)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config.ReportPath)
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	schematest.Validate(t, "capture", text)
	return report, readPackets(t, config.PacketsPath)
}

func readPackets(t *testing.T, path string) []gopacket.Packet {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader, err := pcapgo.NewReader(file)
	if errors.Is(err, io.EOF) {
		return nil // tcpdump was killed before it wrote anything
	}
	if err != nil {
		t.Fatal(err)
	}
	var packets []gopacket.Packet
	for {
		data, _, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default))
	}
}

// flags returns "C S", "S SA", … for each packet: who sent it, client or server of the port, and its flags.
func flags(t *testing.T, packets []gopacket.Packet, port layers.TCPPort) []string {
	t.Helper()
	var list []string
	for _, packet := range packets {
		tcp, ok := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			t.Fatalf("not a TCP packet: %v", packet)
		}
		side := "C "
		switch port {
		case tcp.SrcPort:
			side = "S "
		case tcp.DstPort:
		default:
			t.Fatalf("a packet of another port: %v", packet)
		}
		for _, flag := range []struct {
			set  bool
			name string
		}{{tcp.SYN, "S"}, {tcp.FIN, "F"}, {tcp.RST, "R"}, {tcp.PSH, "P"}, {tcp.ACK, "A"}} {
			if flag.set {
				side += flag.name
			}
		}
		list = append(list, side)
	}
	return list
}

// listen makes a server in this namespace that answers one byte with one and waits for the client's close.
func listen(t *testing.T, address, port string) string {
	t.Helper()
	netns.Require(t)
	if _, err := peer(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				b := make([]byte, 1)
				for {
					if _, err := conn.Read(b); err != nil {
						return
					}
					if _, err := conn.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// exchange connects from the peer, sends a byte, waits for the answer, closes and waits for the server's close.
func exchange(t *testing.T, server string) {
	t.Helper()
	other, err := peer()
	if err != nil {
		t.Fatal(err)
	}
	other.Do(func() {
		err = func() error {
			conn, err := net.Dial("tcp", server)
			if err != nil {
				return err
			}
			if _, err := conn.Write([]byte{1}); err != nil {
				return err
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				return err
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				return err
			}
			if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				return fmt.Errorf("%d bytes and %w instead of the server's close", n, err)
			}
			return conn.Close()
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
}
