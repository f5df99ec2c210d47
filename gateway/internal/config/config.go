// Package config reads the gateway's settings from the environment.
package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connlab/gateway/internal/secure"
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

	DialTimeout             time.Duration // of net.Dialer; 0: as long as the kernel tries
	ServerIdleTimeout       time.Duration // of http.Server; 0: no limit
	ServerReadHeaderTimeout time.Duration // of http.Server, for a TLS handshake too; 0: no limit

	// With clients.
	TLS               bool
	TLSMin, TLSMax    uint16
	TLSSessionTickets bool

	HTTP2                     bool
	HTTP2MaxConcurrentStreams int

	// With the servers.
	UpstreamHTTP2         bool
	UpstreamTLS           string        // the name in their certificates, secure.Any, or "" without TLS
	TLSHandshakeTimeout   time.Duration // of http.Transport; 0: no limit
	TLSClientSessionCache int           // sessions kept to resume; 0: none

	Certificates secure.Files // nil without TLS
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
	boolean := func(name string, knob *bool) {
		read(name, func(value string) (err error) {
			*knob, err = strconv.ParseBool(value)
			return err
		})
	}
	version := func(name string, knob *uint16) {
		read(name, func(value string) error {
			*knob = secure.Versions[value]
			if *knob == 0 {
				return fmt.Errorf("'%s' is no version of TLS", value)
			}
			return nil
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
	duration("CONNLAB_SERVER_READ_HEADER_TIMEOUT", &config.ServerReadHeaderTimeout)
	boolean("CONNLAB_DISABLE_KEEP_ALIVES", &config.DisableKeepAlives)
	boolean("CONNLAB_TLS", &config.TLS)
	version("CONNLAB_TLS_MIN", &config.TLSMin)
	version("CONNLAB_TLS_MAX", &config.TLSMax)
	boolean("CONNLAB_TLS_SESSION_TICKETS", &config.TLSSessionTickets)
	boolean("CONNLAB_HTTP2", &config.HTTP2)
	integer("CONNLAB_HTTP2_MAX_CONCURRENT_STREAMS", &config.HTTP2MaxConcurrentStreams)
	boolean("CONNLAB_UPSTREAM_HTTP2", &config.UpstreamHTTP2)
	duration("CONNLAB_TLS_HANDSHAKE_TIMEOUT", &config.TLSHandshakeTimeout)
	integer("CONNLAB_TLS_CLIENT_SESSION_CACHE", &config.TLSClientSessionCache)
	// Only a run with TLS has these.
	config.UpstreamTLS, _ = lookup("CONNLAB_UPSTREAM_TLS")
	if config.TLS || config.UpstreamTLS != "" && config.UpstreamTLS != secure.Any {
		read("CONNLAB_CERTIFICATES", func(value string) (err error) {
			config.Certificates, err = secure.Unpack(value)
			return err
		})
	}
	return config, errors.Join(errs...)
}
