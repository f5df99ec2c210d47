// Command flowbench measures time and memory of flows against other ways to
// the same account: tshark, tcptrace, and gopacket's fastest decoder under the
// same reduction. All read the same file, in turns. Its last line is JSON.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// tsharkFields are what flows takes from each packet, and what tshark itself
// makes of the sequence numbers.
var tsharkFields = []string{
	"frame.number", "frame.time_epoch", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport",
	"tcp.stream", "tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.window_size_value",
	"tcp.analysis.initial_rtt", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
	"tcp.analysis.duplicate_ack", "tcp.analysis.lost_segment",
}

// tcptraceArguments ask for all that it counts of each connection, in its
// quickest format. The synthetic packets all have the IP ID 0, from which it
// would conclude that the capture has them twice.
var tcptraceArguments = []string{"-n", "-l", "--csv", "--nocheck_hwdups"}

// cost is what one run of a program took.
type cost struct {
	wall, cpu time.Duration
	rssMB     float64
}

// contender is a program with its arguments, and what its runs took.
type contender struct {
	name, key string
	command   []string
	runs      []cost
}

func main() {
	log.SetFlags(0)
	programs := flag.String("programs", ".", "folder of flows and gopacketflows")
	rounds := flag.Int("rounds", 4, "runs of each but tshark before and after each run of tshark; the fastest counts")
	tsharkRounds := flag.Int("tshark-rounds", 2, "runs of tshark; the fastest counts")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: flowbench [-programs FOLDER] [-rounds N] [-tshark-rounds N] CAPTURE")
	}
	if err := bench(*programs, flag.Arg(0), *rounds, *tsharkRounds); err != nil {
		log.Fatal("flowbench: ", err)
	}
}

func bench(programs, capture string, rounds, tsharkRounds int) error {
	out, err := os.MkdirTemp("", "flowbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	ours, theirs := filepath.Join(out, "flows.parquet"), filepath.Join(out, "gopacket.parquet")
	flows := &contender{name: "flows", command: []string{filepath.Join(programs, "flows"), "--out", ours, capture}}
	gopacket := &contender{
		name: "gopacket, same output", key: "gopacket",
		command: []string{filepath.Join(programs, "gopacketflows"), capture, theirs},
	}
	tcptrace := &contender{
		name: "tcptrace -l", key: "tcptrace",
		command: append(append([]string{"tcptrace"}, tcptraceArguments...), capture),
	}
	tshark := &contender{
		name: "tshark -T fields", key: "tshark",
		command: []string{"tshark", "-n", "-r", capture, "-T", "fields"},
	}
	for _, field := range tsharkFields {
		tshark.command = append(tshark.command, "-e", field)
	}
	// In turns, so that none has all of a quiet or a busy time.
	inTurns := func() error {
		for range rounds {
			for _, each := range []*contender{flows, gopacket, tcptrace} {
				if err := each.measure(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := inTurns(); err != nil {
		return err
	}
	if err := mustBeEqual(ours, theirs); err != nil {
		return err
	}
	for range tsharkRounds {
		if err := tshark.measure(); err != nil {
			return err
		}
		if err := inTurns(); err != nil {
			return err
		}
	}
	return report(flows, gopacket, tcptrace, tshark)
}

// report prints a table, and the line for the record.
func report(flows *contender, others ...*contender) error {
	best := fastest(flows.runs)
	line := map[string]any{
		"bench": "flows", "flows_s": best.wall.Seconds(), "flows_mb": math.Round(best.rssMB), "runs": len(flows.runs),
	}
	fmt.Printf("%-22s %5s %10s %10s %10s %9s %9s\n", "", "runs", "wall s", "CPU s", "RSS MB", "× wall", "× RSS")
	for _, each := range append([]*contender{flows}, others...) {
		cost := fastest(each.runs)
		time, memory := cost.wall.Seconds()/best.wall.Seconds(), cost.rssMB/best.rssMB
		fmt.Printf("%-22s %5d %10.3f %10.3f %10.0f %9.1f %9.1f\n",
			each.name, len(each.runs), cost.wall.Seconds(), cost.cpu.Seconds(), cost.rssMB, time, memory)
		if each != flows {
			line[each.key+"_ratio"] = math.Round(100*time) / 100
			line[each.key+"_memory_ratio"] = math.Round(100*memory) / 100
		}
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}

// measure runs the program, drops what it prints on standard output, and adds
// what that took.
func (c *contender) measure() error {
	var stderr bytes.Buffer
	command := exec.Command(c.command[0], c.command[1:]...)
	command.Stderr = &stderr
	start := time.Now()
	err := command.Run()
	wall := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c.command[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	c.runs = append(c.runs, cost{wall, cpu, float64(usage.Maxrss) / 1024})
	return nil
}

// fastest returns the fastest run, with the most memory that any of them took.
func fastest(runs []cost) cost {
	best := runs[0]
	for _, run := range runs[1:] {
		rssMB := max(best.rssMB, run.rssMB)
		if run.wall < best.wall {
			best = run
		}
		best.rssMB = rssMB
	}
	return best
}

func mustBeEqual(a, b string) error {
	one, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	other, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	if !bytes.Equal(one, other) {
		return fmt.Errorf("flows and gopacketflows made different files")
	}
	return nil
}
