// Costbench measures what the collector costs in a network namespace full of sockets, beside a shell loop that asks
// netstat and ss the same at the same rate. Run it by collector/bench.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/netns"
	"connlab/collector/internal/sockdiag"
)

const (
	rateHz = 10
	warmUp = 2 * time.Second
	// How much of its ticks a collector must have written that was watched at work.
	ticksShareMin = 0.98
)

func main() {
	collector := flag.String("collector", "", "the collector's binary")
	timeWait := flag.Int("time-wait", 28_000, "TIME_WAIT sockets")
	open := flag.Int("open", 2_000, "open connections")
	seconds := flag.Int("seconds", 20, "how long to watch the collector; the shell loop runs half as long")
	costMax := flag.Float64("max-percent", 1, "fail if the collector takes more of one core than this")
	flag.Parse()
	inside, code, err := netns.Reexecute()
	if inside {
		err = bench(*collector, *timeWait, *open, time.Duration(*seconds)*time.Second, *costMax)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "costbench:", err)
		code = 1
	}
	os.Exit(code)
}

func bench(collector string, timeWait, open int, watched time.Duration, costMax float64) error {
	stop, err := fill(timeWait, open)
	if err != nil {
		return err
	}
	defer stop()
	if err := standing("before", timeWait); err != nil {
		return err
	}
	cost, err := collectorPercent(collector, watched)
	if err != nil {
		return err
	}
	shell, roundsPerSecond, err := shellPercent(watched / 2)
	if err != nil {
		return err
	}
	if err := standing("after", timeWait); err != nil {
		return err
	}
	fmt.Printf("collector at %d Hz: %.2f %% of a core\n", rateHz, cost)
	fmt.Printf("netstat -s; ss -s; ss -tan at %d Hz: %.2f %% of a core (%.1f Hz reached)\n", rateHz, shell, roundsPerSecond)
	fmt.Printf("ratio: 1 : %.0f\n", shell/cost)
	if cost > costMax {
		return fmt.Errorf("the collector took %.2f %% of a core, the bound is %.2f %%", cost, costMax)
	}
	return nil
}

// standing prints how full the namespace is, and fails if it has less than it was filled with: TIME_WAIT ends after 60 s,
// and the figures must hold until the end.
func standing(when string, timeWait int) error {
	diag, err := sockdiag.Dial()
	if err != nil {
		return err
	}
	counts := map[sockdiag.State]int{}
	err = diag.Sockets(sockdiag.Connections|sockdiag.TimeWaiting, func(s sockdiag.Socket) { counts[s.State]++ })
	if err != nil {
		return err
	}
	fmt.Printf("sockets %s: %v\n", when, counts)
	if found := counts[sockdiag.TimeWait]; found < timeWait {
		err = fmt.Errorf("%s, %d sockets are in TIME_WAIT, not %d", when, found, timeWait)
	}
	return errors.Join(err, diag.Close())
}

// collectorPercent runs the collector and returns its share of one core, without its start.
func collectorPercent(collector string, watched time.Duration) (float64, error) {
	folder, err := os.MkdirTemp("", "costbench-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	command := exec.Command(collector, "run", "--raw", folder, "--state", filepath.Join(folder, "state"))
	command.Env = append(os.Environ(), "CONNLAB_ROLE=bench", fmt.Sprintf("CONNLAB_RATE_HZ=%d", rateHz),
		"CONNLAB_CAPTURE=off", "CONNLAB_CAPTURE_MAX_MB=1")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return 0, err
	}
	time.Sleep(warmUp)
	began := time.Now()
	cpuBegan, failed := cpuClock(command.Process.Pid)
	time.Sleep(watched)
	elapsed := time.Since(began)
	cpuEnded, err := cpuClock(command.Process.Pid)
	failed = errors.Join(failed, err, command.Process.Signal(os.Interrupt), command.Wait())
	if failed != nil {
		return 0, failed
	}
	return percent(cpuEnded-cpuBegan, elapsed), hasTicked(filepath.Join(folder, "samples.jsonl"), warmUp+elapsed)
}

// hasTicked returns an error unless the last line of a collector's samples tells of the ticks of a time.
func hasTicked(path string, elapsed time.Duration) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	var end struct {
		Kind  string
		Ticks int
	}
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil {
		return err
	}
	if due := rateHz * elapsed.Seconds(); end.Kind != "end" || float64(end.Ticks) < ticksShareMin*due {
		return fmt.Errorf("the collector ended with %q after %d ticks, of %.0f", end.Kind, end.Ticks, due)
	}
	return nil
}

// cpuClock reads the CPU time of a process, to the nanosecond (clock_getcpuclockid(3)).
func cpuClock(pid int) (time.Duration, error) {
	const schedulerClock = 2
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &t)
	return time.Duration(t.Nano()), err
}

// shellPercent asks the usual tools the same, as often as they can up to the same rate, and returns what share of one
// core the full rate takes.
func shellPercent(watched time.Duration) (share, roundsPerSecond float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), watched+30*time.Second)
	defer cancel()
	var cpu time.Duration
	began, rounds := time.Now(), 0
	for ; time.Since(began) < watched; rounds++ {
		time.Sleep(time.Until(began.Add(time.Duration(rounds) * time.Second / rateHz)))
		command := exec.CommandContext(ctx, "sh", "-c", "set -e; netstat -s; ss -s; ss -tan")
		if err := command.Run(); err != nil {
			return 0, 0, fmt.Errorf("the shell loop: %w", err)
		}
		cpu += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	period := time.Second / rateHz
	return percent(cpu, time.Duration(rounds)*period), float64(rounds) / time.Since(began).Seconds(), nil
}

func percent(cpu, elapsed time.Duration) float64 { return 100 * cpu.Seconds() / elapsed.Seconds() }
