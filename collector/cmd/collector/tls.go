package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"connlab/collector/internal/probe"
)

const tlsTimeout = 10 * time.Second

// tlsCommand prints what a listener of TLS takes.
func tlsCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("tls", flag.ContinueOnError)
	oldest := flags.String("oldest", "TLSv1.2", "the oldest `version` to try: TLSv1.2 or TLSv1.3")
	rest, err := parse(flags, arguments, "ADDRESS:PORT")
	if err != nil {
		return err
	}
	version, known := probe.Versions[*oldest]
	if !known {
		return fmt.Errorf("'%s' is no version of TLS that it can try", *oldest)
	}
	found, err := probe.TLS(rest[0], version, tlsTimeout)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(found)
}
