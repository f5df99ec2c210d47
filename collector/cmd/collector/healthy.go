package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"

	"connlab/collector/internal/health"
)

func healthy(arguments []string, _ io.Writer) error {
	flags := flag.NewFlagSet("healthy", flag.ContinueOnError)
	path := flags.String("state", statePath, "the `file` that the running collector writes")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	state, err := health.Read(*path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no collector runs here")
	}
	if err != nil {
		return err
	}
	return state.Missing()
}
