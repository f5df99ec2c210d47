package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"time"

	"connlab/collector/internal/names"
)

// namesPath has the table of the names that may move: "run" writes it at its start, "names" changes it.
const namesPath = "/tmp/collector-names.json"

const namesWithin = 5 * time.Second

// namesCommand lets names lead elsewhere, and prints where the role's name server then says that each leads.
func namesCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("names", flag.ContinueOnError)
	set := flags.String("set", "", "where names lead from now on, such as api=backend-2")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	moved, err := names.Parse(*set)
	if err != nil {
		return err
	}
	table, err := names.Load(namesPath)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		maps.Copy(table, moved)
		if err := table.Save(namesPath); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), namesWithin)
	defer cancel()
	found, err := table.Ask(ctx, names.Address)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"names": found})
}
