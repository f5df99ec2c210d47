package main

import (
	"encoding/json"
	"flag"
	"io"
	"time"

	"connlab/collector/internal/probe"
)

const tlsTimeout = 10 * time.Second

// tlsCommand prints what a listener of TLS takes.
func tlsCommand(arguments []string, out io.Writer) error {
	rest, err := parse(flag.NewFlagSet("tls", flag.ContinueOnError), arguments, "ADDRESS:PORT")
	if err != nil {
		return err
	}
	found, err := probe.TLS(rest[0], tlsTimeout)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(found)
}
