// Costbench measures what the collector costs in a network namespace full of sockets, beside a shell loop that asks
// netstat and ss the same at the same rate. collector/bench runs it. Its last line is JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/netns"
	"connlab/collector/internal/sockdiag"
)

const (
	rateHz = 10
	warmUp = 2 * time.Second
	// Only a hang lasts this long.
	patience = 5 * time.Minute
	// The share of its ticks that a collector must have written while it was watched.
	ticksShareMin = 0.98
	// A machine that does nothing else is idle for nearly all of the watch.
	idleShareMin = 0.75
	// On a busy machine a failed measurement is repeated in a new namespace, up to this many times in all.
	measurementsMax = 3
	// EX_TEMPFAIL of sysexits.h.
	busyExitCode = 75
)

// errBusy says that the fault may come from a busy machine.
var errBusy = errors.New("the machine was busy with something else")

func main() {
	collector := flag.String("collector", "", "the collector's binary")
	timeWait := flag.Int("time-wait", 28_000, "TIME_WAIT sockets")
	open := flag.Int("open", 2_000, "open connections")
	seconds := flag.Int("seconds", 10, "how long to watch the collector, at rest and at work; the shell loop runs half as long")
	flag.Parse()
	for round := 1; ; round++ {
		inside, code, err := netns.Reexecute()
		if inside {
			err = bench(*collector, *timeWait, *open, time.Duration(*seconds)*time.Second)
		}
		switch {
		case errors.Is(err, errBusy):
			code = busyExitCode
		case err != nil:
			code = 1
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "costbench:", err)
		}
		if inside || code != busyExitCode {
			os.Exit(code)
		}
		if round == measurementsMax {
			fmt.Fprintf(os.Stderr, "costbench: warning: busy in all %d measurements: these figures prove nothing, measure on a quiet machine\n",
				measurementsMax)
			return
		}
		fmt.Fprintln(os.Stderr, "costbench: measuring again")
	}
}

func bench(collector string, timeWait, open int, watched time.Duration) error {
	filled, err := fill(timeWait, open)
	if err != nil {
		return err
	}
	defer filled.stop()
	// A connection whose two ends close at the same moment has TIME_WAIT on the other side, or on both.
	stood, err := standing("before")
	if err != nil {
		return err
	}
	if stood < timeWait*99/100 {
		return fmt.Errorf("only %d of %d connections are in TIME_WAIT", stood, timeWait)
	}
	rest, err := watch(collector, watched)
	if err != nil {
		return err
	}
	idle := filled.work()
	work, err := watch(collector, watched)
	if err := errors.Join(err, idle()); err != nil {
		return err
	}
	shell, roundsPerSecond, err := shellPercent(watched / 2)
	if err != nil {
		return err
	}
	lasted, err := standing("after")
	if err != nil {
		return err
	}
	rest.timeWait, work.timeWait = lasted, lasted
	fmt.Printf("collector at %d Hz, nothing else at work: %.2f %% of a core, on a machine that was idle for %.0f %%\n",
		rateHz, rest.percent, 100*rest.idleShare)
	fmt.Printf("the same, %d connections send each second: %.2f %% of a core\n", sendsPerSecond, work.percent)
	fmt.Printf("netstat -s; ss -s; ss -tan at %d Hz: %.2f %% of a core (%.1f Hz reached)\n", rateHz, shell, roundsPerSecond)
	if err := errors.Join(rest.judge(stood), work.judge(stood)); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bench": "collector", "rate_hz": rateHz, "time_wait": timeWait, "open": open,
		"core_share_at_rest": share(rest.percent), "core_share_at_work": share(work.percent), "core_share_of_shell": share(shell),
	})
}

// share turns per cent into a share with four places.
func share(percent float64) float64 { return math.Round(100*percent) / 1e4 }

// A measurement is what was seen while a collector was watched, and how many sockets in TIME_WAIT lasted to the end.
type measurement struct {
	percent, idleShare float64
	ticks              int
	elapsed            time.Duration
	timeWait           int
}

// judge returns what went wrong: as errBusy, if the machine was busy.
func (m measurement) judge(timeWait int) error {
	var faults error
	// TIME_WAIT ends after 60 s, and the figures are those of a namespace that was full until the end.
	if m.timeWait < timeWait {
		faults = errors.Join(faults, fmt.Errorf("at the end %d sockets are in TIME_WAIT, not %d", m.timeWait, timeWait))
	}
	if due := rateHz * m.elapsed.Seconds(); float64(m.ticks) < ticksShareMin*due {
		faults = errors.Join(faults, fmt.Errorf("the collector ended after %d ticks, of %.0f", m.ticks, due))
	}
	if faults != nil && m.idleShare < idleShareMin {
		return fmt.Errorf("%w, idle for %.0f %%: %w", errBusy, 100*m.idleShare, faults)
	}
	return faults
}

// standing prints how full the namespace is, and returns how many sockets are in TIME_WAIT.
func standing(when string) (timeWait int, err error) {
	diag, err := sockdiag.Dial()
	if err != nil {
		return 0, err
	}
	counts := map[sockdiag.State]int{}
	err = diag.Sockets(sockdiag.Connections|sockdiag.TimeWaiting, func(s sockdiag.Socket) { counts[s.State]++ })
	fmt.Printf("sockets %s: %v\n", when, counts)
	return counts[sockdiag.TimeWait], errors.Join(err, diag.Close())
}

// watch runs the collector and measures it at work, without its start.
func watch(collector string, watched time.Duration) (measurement, error) {
	folder, err := os.MkdirTemp("", "costbench-")
	if err != nil {
		return measurement{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	command := exec.Command(collector, "run", "--raw", folder, "--state", filepath.Join(folder, "state"))
	command.Env = append(os.Environ(), "CONNLAB_ROLE=bench", fmt.Sprintf("CONNLAB_RATE_HZ=%d", rateHz),
		"CONNLAB_CAPTURE=off", "CONNLAB_CAPTURE_MAX_MB=1")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return measurement{}, err
	}
	time.Sleep(warmUp)
	began := time.Now()
	cpuBegan, failed := cpuClock(command.Process.Pid)
	machineBegan, idleBegan, err := machineClock()
	failed = errors.Join(failed, err)
	time.Sleep(watched)
	elapsed := time.Since(began)
	cpuEnded, err := cpuClock(command.Process.Pid)
	failed = errors.Join(failed, err)
	machineEnded, idleEnded, err := machineClock()
	failed = errors.Join(failed, err, command.Process.Signal(os.Interrupt), command.Wait())
	if failed != nil {
		return measurement{}, failed
	}
	ticks, err := ticksOf(filepath.Join(folder, "samples.jsonl"))
	return measurement{
		percent: percent(cpuEnded-cpuBegan, elapsed), idleShare: (idleEnded - idleBegan) / (machineEnded - machineBegan),
		ticks: ticks, elapsed: warmUp + elapsed,
	}, err
}

// machineClock reads how long all processors together have run, and how long of that they were idle (proc_stat(5)).
func machineClock() (all, idle float64, err error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	const idleColumn, columns = 4, 9 // cpu user nice system idle iowait irq softirq steal; guest time is user time
	fields := strings.Fields(line)
	if len(fields) < columns {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for i := 1; i < columns; i++ {
		ticks, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, 0, err
		}
		all += ticks
		if i == idleColumn {
			idle = ticks
		}
	}
	return all, idle, nil
}

// ticksOf returns the number of ticks in the last line of a collector's samples.
func ticksOf(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	var end struct {
		Kind  string
		Ticks int
	}
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil {
		return 0, err
	}
	if end.Kind != "end" {
		return 0, fmt.Errorf("the collector's samples end with %q", end.Kind)
	}
	return end.Ticks, nil
}

// cpuClock reads the CPU time of a process, to the nanosecond (clock_getcpuclockid(3)).
func cpuClock(pid int) (time.Duration, error) {
	const schedulerClock = 2
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &t)
	return time.Duration(t.Nano()), err
}

// shellPercent asks the usual tools for the same, as often as they can up to the same rate, and returns the share of
// one core that the full rate takes.
func shellPercent(watched time.Duration) (share, roundsPerSecond float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), watched+patience)
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
