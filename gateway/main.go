// The gateway is the reverse proxy of the lab whose pool of upstream connections is Go's own: net/http's Transport under
// httputil's ReverseProxy, with every limit of the pool a knob. See gateway/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"connlab/gateway/internal/config"
)

// Exit codes beside 0.
const (
	exitFailed = 1 // the gateway could not serve, or could not keep its record
	exitUsage  = 2 // a setting or an argument was refused
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stderr))
}

// run serves until ctx ends, and returns the exit code. It writes its messages to stderr, a line for each fault.
func run(ctx context.Context, arguments []string, lookup func(string) (string, bool), stderr io.Writer) int {
	var places places
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&places.raw, "raw", "/raw", "the `folder` to write to")
	flags.StringVar(&places.traffic, "listen", "0.0.0.0:8080", "the `address` of the traffic")
	flags.StringVar(&places.management, "management", "127.0.0.1:8081", "the `address` of the management port")
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		return refuse(stderr, exitUsage, fmt.Errorf("unknown argument %q: there are only flags", flags.Arg(0)))
	}
	settings, err := config.FromEnvironment(lookup)
	if err != nil {
		return refuse(stderr, exitUsage, err)
	}
	gateway, err := open(ctx, settings, places, stderr)
	if err != nil {
		return refuse(stderr, exitUsage, err)
	}
	if err := gateway.serve(ctx); err != nil {
		return refuse(stderr, exitFailed, err)
	}
	return 0
}

// refuse writes each fault of an error on a line of its own.
func refuse(stderr io.Writer, code int, err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(stderr, "gateway: %s\n", line)
	}
	return code
}
