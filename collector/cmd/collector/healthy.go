package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"time"

	"connlab/collector/internal/health"
)

const lookEvery = 20 * time.Millisecond

// healthy returns what is missing at the end of its time. It waits by itself, because an engine takes far more of the
// processors to start another health check than this one takes to look again.
func healthy(arguments []string, _ io.Writer) error {
	flags := flag.NewFlagSet("healthy", flag.ContinueOnError)
	path := flags.String("state", statePath, "the `file` that the running collector writes")
	within := flags.Duration("within", 0, "how long to wait")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	for end := time.Now().Add(*within); ; time.Sleep(lookEvery) {
		if err := missing(*path); err == nil || !time.Now().Before(end) {
			return err
		}
	}
}

func missing(path string) error {
	state, err := health.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no collector runs here")
	}
	if err != nil {
		return err
	}
	return state.Missing()
}
