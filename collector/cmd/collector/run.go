package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/config"
	"connlab/collector/internal/sampler"
)

// statePath is in the container's own /tmp: "run" writes it, "healthy" reads it.
const statePath = "/tmp/collector-state.json"

func run(arguments []string, _ io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	raw := flags.String("raw", "/raw", "the `folder` to write to")
	state := flags.String("state", statePath, "the `file` that tells the health check how far the collector is")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	settings, err := config.FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	if err := quietRuntime(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	c, err := openCollection(settings, *raw, *state)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-signals:
			c.stop(sampler.ErrStopped)
		case <-deadline(settings.Deadline):
			c.fail(fmt.Errorf("nobody stopped it within %v", settings.Deadline))
		}
	}()
	return c.run()
}

// hold does nothing until a signal ends it, or until its time is over. It is the first process of its container, so the
// container then ends, with every process in its process namespace. A program without a deadline of its own gets one if
// it joins this namespace.
func hold(arguments []string, _ io.Writer) error {
	flags := flag.NewFlagSet("hold", flag.ContinueOnError)
	within := flags.Duration("for", time.Hour, "how `long`, at most")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-signals:
		return nil
	case <-deadline(*within):
		return fmt.Errorf("nobody stopped it within %v", *within)
	}
}

// deadline gives a channel that receives when the time is over; never, if it is 0.
func deadline(within time.Duration) <-chan time.Time {
	if within == 0 {
		return nil
	}
	return time.After(within)
}

// timerSlack is how much later than asked the kernel may end a short sleep: 0.05 ms is the default.
const timerSlack = time.Millisecond

// quietRuntime keeps Go's own work small: it would cost more than the ticks. The collector does one thing at a time and
// makes little garbage. Meanwhile a thread of the runtime wakes every 20 µs to watch it, which costs 0.1 % of a core;
// timer slack makes it wake less often. A thread inherits the slack of the thread that made it, and the runtime's
// thread exists from the start: the program therefore executes itself again.
func quietRuntime() error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	if slack >= int(timerSlack) {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	if slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || slack < int(timerSlack) {
		// A process with real-time priority has no slack, and is woken as often as it wants.
		return err
	}
	if err := unix.Exec("/proc/self/exe", os.Args, os.Environ()); err != nil {
		return fmt.Errorf("running the collector anew: %w", err)
	}
	return nil
}
