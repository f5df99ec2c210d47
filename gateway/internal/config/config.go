// Package config reads the gateway's settings from the environment.
package config

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A day; the gateway would take more, a run would not.
const durationMax = 24 * time.Hour

// The most connections that any knob may speak of.
const connectionsMax = 1_000_000

// Config is what a gateway is told. The lab's model holds the defaults, which are Go's own; the gateway has none.
type Config struct {
	Upstreams []string // host:port, at least one

	// Of http.Transport.
	MaxIdleConns          int // 0: no limit
	MaxIdleConnsPerHost   int
	MaxConnsPerHost       int           // 0: no limit
	IdleConnTimeout       time.Duration // 0: no limit
	ResponseHeaderTimeout time.Duration // 0: no limit
	DisableKeepAlives     bool

	DialTimeout       time.Duration // of net.Dialer; 0: as long as the kernel tries
	ServerIdleTimeout time.Duration // of http.Server; 0: no limit
}

// FromEnvironment reads the settings. Its error has a line for each that is missing or bad.
func FromEnvironment(lookup func(string) (string, bool)) (Config, error) {
	var config Config
	var errs []error
	read := func(name string, set func(value string) error) {
		value, found := lookup(name)
		if !found {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		} else if err := set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: must be %w", name, value, err))
		}
	}
	integer := func(name string, knob *int, low int) {
		read(name, func(value string) (err error) {
			*knob, err = parseInteger(value, low)
			return err
		})
	}
	duration := func(name string, knob *time.Duration) {
		read(name, func(value string) (err error) {
			*knob, err = parseDuration(value)
			return err
		})
	}
	read("CONNLAB_UPSTREAMS", func(value string) (err error) {
		config.Upstreams, err = parseUpstreams(value)
		return err
	})
	integer("CONNLAB_MAX_IDLE_CONNS", &config.MaxIdleConns, 0)
	// Go reads 0 as its default, 2, and a negative number as no keep-alive at all, which has a knob of its own.
	integer("CONNLAB_MAX_IDLE_CONNS_PER_HOST", &config.MaxIdleConnsPerHost, 1)
	integer("CONNLAB_MAX_CONNS_PER_HOST", &config.MaxConnsPerHost, 0)
	duration("CONNLAB_IDLE_CONN_TIMEOUT", &config.IdleConnTimeout)
	duration("CONNLAB_RESPONSE_HEADER_TIMEOUT", &config.ResponseHeaderTimeout)
	duration("CONNLAB_DIAL_TIMEOUT", &config.DialTimeout)
	duration("CONNLAB_SERVER_IDLE_TIMEOUT", &config.ServerIdleTimeout)
	read("CONNLAB_DISABLE_KEEP_ALIVES", func(value string) error {
		config.DisableKeepAlives = value == "true"
		if value != "true" && value != "false" {
			return errors.New("'true' or 'false'")
		}
		return nil
	})
	return config, errors.Join(errs...)
}

// Digits alone: no sign, no leading zero, no unit.
var (
	plainInteger = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
	milliseconds = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})ms$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
)

func parseInteger(value string, low int) (int, error) {
	number, err := strconv.Atoi(value)
	if err != nil || !plainInteger.MatchString(value) || number < low || number > connectionsMax {
		return 0, fmt.Errorf("an integer from %d to %d", low, connectionsMax)
	}
	return number, nil
}

func parseDuration(value string) (time.Duration, error) {
	duration, err := time.ParseDuration(value)
	if err != nil || !milliseconds.MatchString(value) || duration > durationMax {
		return 0, fmt.Errorf("from 0ms to %dms, as in '60000ms'", durationMax.Milliseconds())
	}
	return duration, nil
}

func parseUpstreams(value string) ([]string, error) {
	upstreams := strings.Fields(value)
	if len(upstreams) == 0 {
		return nil, errors.New("host:port, several with a space between them")
	}
	for _, upstream := range upstreams {
		host, text, err := net.SplitHostPort(upstream)
		port, portErr := parseInteger(text, 1)
		if err != nil || portErr != nil || port > 65535 || !hostName.MatchString(host) {
			return nil, fmt.Errorf("host:port pairs with a space between them, and '%s' is none", upstream)
		}
	}
	return upstreams, nil
}
