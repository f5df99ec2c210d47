package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"connlab/collector/internal/kernelevents"
)

// eventsCommand tries whether the kernel gives its events here, and ends at once.
func eventsCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("events", flag.ContinueOnError)
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	programs, err := kernelevents.Load()
	if err != nil {
		return err
	}
	defer programs.Close()
	_, err = fmt.Fprintln(out, strings.Join(programs.Tracepoints(), " "))
	return err
}
