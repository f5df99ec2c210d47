package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"connlab/collector/internal/address"
	"connlab/collector/internal/capture"
	"connlab/collector/internal/config"
	"connlab/collector/internal/health"
	"connlab/collector/internal/kernelevents"
	"connlab/collector/internal/latest"
	"connlab/collector/internal/metrics"
	"connlab/collector/internal/names"
	"connlab/collector/internal/sampler"
	"connlab/collector/internal/scrape"
)

// A collection runs the sampler, the capture and the scrapes of one role side by side. If a part fails, all end. Only a
// failed capture ends nothing else, because the samples are useful without it, nor do events
// that the kernel does not give.
type collection struct {
	settings config.Config
	raw      string // the folder to write to
	samples  *sampler.Sampler
	metrics  *metrics.Server // nil if none are served
	names    *names.Server   // nil if no name may move
	health   *health.Reporter

	context context.Context
	stop    context.CancelCauseFunc
	parts   sync.WaitGroup
	mutex   sync.Mutex
	errs    []error
}

func openCollection(settings config.Config, raw, state string) (*collection, error) {
	c := &collection{settings: settings, raw: raw}
	// The addresses come before "healthy", so that a program that waits for it can rely on them.
	for _, prefix := range settings.Addresses {
		if err := address.Add(settings.Interface, prefix); err != nil {
			return nil, err
		}
	}
	var err error
	if c.names, err = serveNames(settings.Names); err != nil {
		return nil, err
	}
	c.health, err = health.NewReporter(state, health.State{
		Capture: settings.Capture == capture.Off, Events: !settings.Events, Ready: settings.ReadyURL == "",
	})
	if err != nil {
		return nil, err
	}
	sampling := sampler.Config{
		Role: settings.Role, RateHz: settings.RateHz, Path: filepath.Join(raw, "samples.jsonl"), ProcRoot: "/proc",
		Everything: settings.Observing,
	}
	if settings.Metrics.IsValid() {
		// If the port is taken, the collector ends before it records anything. Otherwise the user would look at an
		// empty board for a whole run.
		sampling.Latest = latest.New()
		c.metrics, err = metrics.Listen(settings.Metrics, settings.MetricsLabels, sampling.Latest.Reading)
		if err != nil {
			return nil, err
		}
		sampling.MetricsPort, sampling.MetricsConnections = c.metrics.Port(), c.metrics.Connections
	}
	c.samples, err = sampler.Open(sampling)
	if err != nil {
		return nil, err
	}
	c.context, c.stop = context.WithCancelCause(context.Background())
	return c, nil
}

// serveNames listens for the role's questions; what the table does not have goes on to the engine's name server.
func serveNames(table names.Table) (*names.Server, error) {
	if len(table) == 0 {
		return nil, nil
	}
	passOn, err := names.NameServer("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	if err := table.Save(namesPath); err != nil {
		return nil, err
	}
	return names.Listen(names.Address, namesPath, passOn)
}

// run returns once all parts have ended, each in good order.
func (c *collection) run() error {
	c.start(func() error {
		return c.samples.Run(c.context, func() { c.report(func(s *health.State) { s.Sampling = true }) })
	})
	if c.settings.Capture != capture.Off {
		c.start(c.capturePackets)
	}
	if c.settings.Events {
		c.start(c.recordEvents)
	}
	if c.names != nil {
		c.start(func() error { return c.names.Run(c.context) })
	}
	if c.metrics != nil {
		c.start(c.serveMetrics)
	}
	c.start(c.watchRole)
	c.parts.Wait()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return errors.Join(c.errs...)
}

func (c *collection) start(part func() error) {
	c.parts.Add(1)
	go func() {
		defer c.parts.Done()
		c.fail(part())
	}()
}

// fail ends the collection if there is an error.
func (c *collection) fail(err error) {
	if err == nil {
		return
	}
	// Noted before anything ends, because the error may come from outside the parts, and run does not wait for that.
	c.mutex.Lock()
	c.errs = append(c.errs, err)
	c.mutex.Unlock()
	c.stop(err)
}

// report writes a change of the state for the health check.
func (c *collection) report(change func(*health.State)) { c.fail(c.health.Update(change)) }

func (c *collection) capturePackets() error {
	report, err := capture.Run(c.context, capture.Config{
		Mode: c.settings.Capture, Interface: c.settings.Interface, BytesMax: c.settings.CaptureBytesMax,
		HeadersOnly: c.settings.Observing,
		PacketsPath: filepath.Join(c.raw, "capture.pcap"), ReportPath: filepath.Join(c.raw, "capture.json"),
	}, func() { c.report(func(s *health.State) { s.Capture = true }) })
	if report.Reason != nil {
		fmt.Fprintf(os.Stderr, "collector: capture: %s\n", *report.Reason)
		c.report(func(s *health.State) { s.Capture = false })
	}
	return err
}

// recordEvents prints why the kernel gives no events, if so. The recording goes on: the file says it, too.
func (c *collection) recordEvents() error {
	return kernelevents.Run(c.context, kernelevents.Config{
		Role: c.settings.Role, Path: filepath.Join(c.raw, "events.jsonl"),
	}, func(reason error) {
		if reason != nil {
			fmt.Fprintf(os.Stderr, "collector: events: %s\n", reason)
		}
		c.report(func(s *health.State) { s.Events = true })
	})
}

// serveMetrics prints why it ended early, if it did. The recording goes on, because it is useful without a board.
func (c *collection) serveMetrics() error {
	if err := c.metrics.Run(c.context); err != nil {
		fmt.Fprintf(os.Stderr, "collector: %s\n", err)
	}
	return nil
}

// watchRole waits until the role is ready, then starts to scrape its metrics.
func (c *collection) watchRole() error {
	if c.settings.ReadyURL != "" {
		err := waitReady(c.context, c.settings.ReadyURL)
		if c.context.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		c.report(func(s *health.State) { s.Ready = true })
	}
	for _, source := range c.settings.Scrapes {
		c.start(func() error {
			return scrape.Run(c.context, source.Address, filepath.Join(c.raw, source.Name+".jsonl"))
		})
	}
	return nil
}
