// Command flowbench times flows against other ways to the same fields: tshark,
// and gopacket's fastest decoder under the same reduction. All read the same
// file, one after the other. Its last line is JSON.
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

// cost is what one run of a program took.
type cost struct {
	wall, cpu time.Duration
	rssMB     float64
}

func main() {
	log.SetFlags(0)
	programs := flag.String("programs", ".", "folder of flows and gopacketflows")
	rounds := flag.Int("rounds", 15, "runs of flows and of gopacketflows before and after each of tshark; the fastest counts")
	tsharkRounds := flag.Int("tshark-rounds", 1, "runs of tshark; the fastest counts")
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
	var flows, gopacket, tshark []cost
	// In turns, so that none has all of a quiet or a busy time.
	inTurns := func(rounds int) error {
		for range rounds {
			err := measure(&flows, filepath.Join(programs, "flows"), "--out", ours, capture)
			if err == nil {
				err = measure(&gopacket, filepath.Join(programs, "gopacketflows"), capture, theirs)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := inTurns(rounds); err != nil {
		return err
	}
	if err := mustBeEqual(ours, theirs); err != nil {
		return err
	}
	arguments := []string{"-n", "-r", capture, "-T", "fields"}
	for _, field := range tsharkFields {
		arguments = append(arguments, "-e", field)
	}
	for range tsharkRounds {
		if err := measure(&tshark, "tshark", arguments...); err != nil {
			return err
		}
		if err := inTurns(rounds); err != nil {
			return err
		}
	}

	fmt.Printf("%-22s %10s %10s %10s %9s\n", "", "wall s", "CPU s", "RSS MB", "× flows")
	best := fastest(flows)
	ratio := func(c cost) float64 { return c.wall.Seconds() / best.wall.Seconds() }
	for _, row := range []struct {
		name string
		cost cost
	}{{"flows", best}, {"gopacket, same output", fastest(gopacket)}, {"tshark -T fields", fastest(tshark)}} {
		fmt.Printf("%-22s %10.3f %10.3f %10.0f %9.1f\n",
			row.name, row.cost.wall.Seconds(), row.cost.cpu.Seconds(), row.cost.rssMB, ratio(row.cost))
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bench": "flows", "tshark_ratio": math.Round(ratio(fastest(tshark))),
		"gopacket_ratio": math.Round(100*ratio(fastest(gopacket))) / 100, "flows_s": best.wall.Seconds(), "flows_mb": math.Round(best.rssMB),
	})
}

// measure runs a program, drops what it prints on standard output, and adds
// what that took.
func measure(to *[]cost, program string, arguments ...string) error {
	var stderr bytes.Buffer
	command := exec.Command(program, arguments...)
	command.Stderr = &stderr
	start := time.Now()
	err := command.Run()
	wall := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(stderr.Bytes()))
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	*to = append(*to, cost{wall, cpu, float64(usage.Maxrss) / 1024})
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
