package main

import (
	"flag"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

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
	quietRuntime()
	c, err := openCollection(settings, *raw, *state)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		c.stop(sampler.ErrStopped)
	}()
	return c.run()
}

// quietRuntime keeps Go's own work small: the collector does one thing at a time, and makes little garbage.
func quietRuntime() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
}
