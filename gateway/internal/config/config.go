// Package config reads the gateway's settings from the environment.
package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Config holds the gateway's settings. role.yaml has the defaults, which are Go's own; the gateway has none.
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

// FromEnvironment reads the settings. Its error has a line for each that is missing or cannot be read. role.yaml says
// what a setting may be, and check-knobs has checked it.
func FromEnvironment(lookup func(string) (string, bool)) (Config, error) {
	var config Config
	var errs []error
	read := func(name string, set func(value string) error) {
		value, found := lookup(name)
		if !found {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		} else if err := set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	integer := func(name string, knob *int) {
		read(name, func(value string) (err error) {
			*knob, err = strconv.Atoi(value)
			return err
		})
	}
	duration := func(name string, knob *time.Duration) {
		read(name, func(value string) (err error) {
			*knob, err = time.ParseDuration(value)
			return err
		})
	}
	read("CONNLAB_UPSTREAMS", func(value string) error {
		config.Upstreams = strings.Fields(value)
		return nil
	})
	integer("CONNLAB_MAX_IDLE_CONNS", &config.MaxIdleConns)
	integer("CONNLAB_MAX_IDLE_CONNS_PER_HOST", &config.MaxIdleConnsPerHost)
	integer("CONNLAB_MAX_CONNS_PER_HOST", &config.MaxConnsPerHost)
	duration("CONNLAB_IDLE_CONN_TIMEOUT", &config.IdleConnTimeout)
	duration("CONNLAB_RESPONSE_HEADER_TIMEOUT", &config.ResponseHeaderTimeout)
	duration("CONNLAB_DIAL_TIMEOUT", &config.DialTimeout)
	duration("CONNLAB_SERVER_IDLE_TIMEOUT", &config.ServerIdleTimeout)
	read("CONNLAB_DISABLE_KEEP_ALIVES", func(value string) (err error) {
		config.DisableKeepAlives, err = strconv.ParseBool(value)
		return err
	})
	return config, errors.Join(errs...)
}
