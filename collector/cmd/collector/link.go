package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"connlab/collector/internal/link"
	"connlab/collector/internal/ping"
)

const (
	linkSocket = "/tmp/collector-link.sock"
	linkLog    = "/tmp/collector-link.log"
)

// linkCommand sets the links that it is given, and prints how they stand.
func linkCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("link", flag.ContinueOnError)
	set := flags.String("set", "", "the links' settings, as a JSON list; without them nothing is set")
	change := flags.String("change", "", "other settings for the links whose packets a process holds, as a JSON list")
	way := flags.String("way", "", "netem or nfqueue; by default netem, where the kernel has it and it can do all")
	hold := flags.Bool("hold", false, "hold the packets of the links, until SIGTERM or SIGINT")
	device := flags.String("device", "eth0", "the `interface`")
	socket := flags.String("socket", linkSocket, "where the process that holds packets tells how its links are")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	if *change != "" {
		all, err := link.Parse(*change)
		if err != nil {
			return err
		}
		report, err := link.Change(*socket, all)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(report)
	}
	if *set == "" {
		report, err := link.Read(*device, *socket)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(report)
	}
	all, err := link.Parse(*set)
	if err != nil {
		return err
	}
	if *way != "" && *way != link.Netem && *way != link.NFQueue {
		return fmt.Errorf("--way %s: want netem or nfqueue", *way)
	}
	if *hold {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return link.Serve(ctx, *device, *socket, all, func() { fmt.Fprintln(out, "ready") })
	}
	log := filepath.Join(filepath.Dir(*socket), filepath.Base(linkLog))
	report, err := link.Set(*device, *socket, *way, all, func() error {
		return link.Detach(log, "link", "--hold", "--set", *set, "--device", *device, "--socket", *socket)
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(report)
}

// pingCommand measures round trips.
func pingCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("ping", flag.ContinueOnError)
	count := flags.Int("count", 1000, "how many echoes")
	every := flags.Duration("every", 2*time.Millisecond, "the time between two")
	patience := flags.Duration("patience", time.Second, "how long to wait for the answer to the last one")
	within := flags.Duration("within", 15*time.Second, "how long all may take")
	rest, err := parse(flags, arguments, "ADDRESS")
	if err != nil {
		return err
	}
	to, err := netip.ParseAddr(rest[0])
	if err != nil || !to.Is4() {
		return fmt.Errorf("%q is no IPv4 address", rest[0])
	}
	if *count < 1 || *count > 1<<16 || *every <= 0 {
		return fmt.Errorf("--count %d --every %v: want 1 to 65536, and a time between them", *count, *every)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *within)
	defer cancel()
	result, err := ping.Measure(ctx, to, *count, *every, *patience)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
