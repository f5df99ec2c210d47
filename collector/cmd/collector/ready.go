package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"connlab/collector/internal/config"
	"connlab/collector/internal/probe"
)

const readyWithin = 90 * time.Second

// ready returns once the role answers. After a restart it answers again; "healthy" reports the first time only.
func ready(arguments []string, _ io.Writer) error {
	flags := flag.NewFlagSet("ready", flag.ContinueOnError)
	within := flags.Duration("within", readyWithin, "how long to wait")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	address, err := config.ReadyURL(os.Getenv)
	if err != nil || address == "" {
		return err
	}
	late := fmt.Errorf("%s did not answer 200 within %v", address, *within)
	if strings.HasPrefix(address, config.Port) {
		late = fmt.Errorf("nothing listened at %s within %v", address, *within)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), *within, late)
	defer cancel()
	return waitReady(ctx, address)
}

func waitReady(ctx context.Context, address string) error {
	listening, err := probe.NewListening(address)
	if err != nil {
		return err
	}
	if strings.HasPrefix(address, config.Port) {
		return errors.Join(probe.WaitListening(ctx, listening.Now), listening.Close())
	}
	return errors.Join(probe.WaitReady(ctx, address, listening.Now), listening.Close())
}
