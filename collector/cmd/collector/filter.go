package main

import (
	"encoding/json"
	"flag"
	"io"

	"connlab/collector/internal/filter"
)

// filterCommand lets nobody connect to a port of this namespace, or everybody again, and prints whether a rule stands.
func filterCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("filter", flag.ContinueOnError)
	port := flags.Int("port", 0, "the port")
	answer := flags.String("answer", "none", "what a client that connects gets: none, port-unreachable or host-prohibited")
	remove := flags.Bool("remove", false, "take the rule away")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	rule, err := filter.NewRule(*port, *answer)
	if err != nil {
		return err
	}
	change := rule.Add
	if *remove {
		change = rule.Remove
	}
	if err := change(); err != nil {
		return err
	}
	stands, err := rule.Stands()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"stands": stands})
}
