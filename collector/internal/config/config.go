// Package config reads the settings of "collector run" from the environment.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"connlab/collector/internal/capture"
	"connlab/collector/internal/management"
	"connlab/collector/internal/metrics"
	"connlab/collector/internal/names"
)

// The range of the sampling rate. The kernel's clock tick of 100 Hz limits what faster sampling could show.
const (
	rateHzMin = 1
	rateHzMax = 100
)

const secondsMax = 30 * 24 * 3600

// A Scrape is one source of the role's own metrics.
type Scrape struct {
	Name    string // of the file: Name.jsonl
	Address string
}

// Config holds the collector's settings. The lab holds the defaults; the collector itself has one, the interface.
type Config struct {
	Role            string
	RateHz          int
	ReadyURL        string // "" if the role has none
	Scrapes         []Scrape
	Capture         capture.Mode
	CaptureBytesMax int64
	// Events says that the kernel's own events are recorded.
	Events bool
	// Observing says that the namespace is not the lab's: no port in it belongs to the lab, and the capture keeps no
	// packet's data.
	Observing bool
	// Interface is captured, and gets the addresses.
	Interface string
	// Addresses are added to the interface's own.
	Addresses []netip.Prefix
	// Names says where each name leads that may move; the collector is the role's name server if there are any.
	Names names.Table
	// Metrics is where the current figures are served; the zero value if they are not.
	Metrics netip.AddrPort
	// MetricsLabels are the labels of each of these figures; the instance comes first.
	MetricsLabels []metrics.Label
	// Deadline is when the collector ends by itself if nobody has stopped it; 0 if it never does.
	Deadline time.Duration
}

var (
	roleName   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	scrapeName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)
	labelName  = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
)

// The variables by which the user of compose.yaml sets these.
var stackVariables = map[string]string{
	"CONNLAB_RATE_HZ":        "SAMPLER_RATE_HZ",
	"CONNLAB_CAPTURE":        "CAPTURE_MODE",
	"CONNLAB_CAPTURE_MAX_MB": "CAPTURE_MAX_MB",
}

func shown(name string) string {
	if variable, found := stackVariables[name]; found {
		return variable + " (in the container: " + name + ")"
	}
	return name
}

// FromEnvironment reads the settings. Its error names everything that is missing or bad.
func FromEnvironment(getenv func(string) string) (Config, error) {
	var errs []error
	read := func(name string, set func(value string) error) {
		if err := set(getenv(name)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", shown(name), err))
		}
	}
	config := Config{Interface: "eth0"}
	read("CONNLAB_ROLE", func(value string) error {
		config.Role = value
		return matches(roleName, value, "a name such as backend-1")
	})
	read("CONNLAB_RATE_HZ", func(value string) (err error) {
		config.RateHz, err = integer(value, rateHzMin, rateHzMax)
		return err
	})
	read(readyURL, func(value string) error {
		config.ReadyURL = value
		return optionalReadiness(value)
	})
	read("CONNLAB_SCRAPE", func(value string) (err error) {
		config.Scrapes, err = scrapes(value)
		return err
	})
	read("CONNLAB_CAPTURE", func(value string) (err error) {
		config.Capture, err = capture.ParseMode(value)
		return err
	})
	read("CONNLAB_CAPTURE_MAX_MB", func(value string) error {
		mebibytes, err := integer(value, 1, 1<<20)
		config.CaptureBytesMax = int64(mebibytes) << 20
		return err
	})
	read("CONNLAB_EVENTS", func(value string) error {
		config.Events = value == "kernel"
		return matches(regexp.MustCompile("^(kernel|off)?$"), value, "kernel or off")
	})
	read("CONNLAB_OBSERVING", func(value string) error {
		config.Observing = value == "1"
		return matches(regexp.MustCompile("^1?$"), value, "1 or nothing")
	})
	read("CONNLAB_INTERFACE", func(value string) error {
		if value != "" {
			config.Interface = value
		}
		return nil
	})
	read("CONNLAB_ADDRESSES", func(value string) (err error) {
		config.Addresses, err = addresses(value)
		return err
	})
	read("CONNLAB_NAMES", func(value string) (err error) {
		config.Names, err = names.Parse(value)
		return err
	})
	read("CONNLAB_METRICS", func(value string) (err error) {
		config.Metrics, err = metricsAddress(value)
		if err == nil && config.Metrics.IsValid() && config.Observing {
			// An observation opens no port in a namespace that is not the lab's.
			err = errors.New("an observation serves no metrics")
		}
		return err
	})
	read("CONNLAB_METRICS_LABELS", func(value string) (err error) {
		if getenv("CONNLAB_METRICS") == "" {
			return matches(regexp.MustCompile("^$"), value, "nothing, because CONNLAB_METRICS is empty")
		}
		config.MetricsLabels, err = labels(config.Role, value)
		return err
	})
	read("CONNLAB_DEADLINE_S", func(value string) error {
		if value == "" {
			return nil
		}
		seconds, err := integer(value, 1, secondsMax)
		config.Deadline = time.Duration(seconds) * time.Second
		return err
	})
	return config, errors.Join(errs...)
}

const readyURL = "CONNLAB_READY_URL"

// ReadyURL reads the URL that the role answers when it is ready; "" if it has none.
func ReadyURL(getenv func(string) string) (string, error) {
	value := getenv(readyURL)
	if err := optionalReadiness(value); err != nil {
		return "", fmt.Errorf("%s: %w", readyURL, err)
	}
	return value, nil
}

// Port is the prefix of the address of a role that is ready as soon as something listens on its port.
const Port = "tcp://"

func optionalReadiness(value string) error {
	host, isPort := strings.CutPrefix(value, Port)
	if !isPort {
		return optionalURL(value)
	}
	if _, err := netip.ParseAddrPort(host); err != nil {
		return fmt.Errorf("%q: want an address such as tcp://127.0.0.1:8080", value)
	}
	return nil
}

func matches(pattern *regexp.Regexp, value, want string) error {
	if !pattern.MatchString(value) {
		return fmt.Errorf("%q: want %s", value, want)
	}
	return nil
}

func integer(value string, low, high int) (int, error) {
	number, err := strconv.Atoi(value)
	if err != nil || number < low || number > high {
		return 0, fmt.Errorf("%q: want an integer from %d to %d", value, low, high)
	}
	return number, nil
}

func optionalURL(value string) error {
	if value == "" {
		return nil
	}
	address, err := url.Parse(value)
	if err != nil || address.Scheme != "http" || address.Hostname() == "" || address.Port() == "" {
		return fmt.Errorf("%q: want an address such as http://127.0.0.1:8081/path, with its port", value)
	}
	return nil
}

// addresses parses "198.18.0.254/24 …".
func addresses(value string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, entry := range strings.Fields(value) {
		prefix, err := netip.ParsePrefix(entry)
		if err != nil || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%q: want an address with its prefix, such as 198.18.0.254/24", entry)
		}
		list = append(list, prefix)
	}
	return list, nil
}

// metricsAddress parses "0.0.0.0:9645"; nothing is the zero value.
func metricsAddress(value string) (netip.AddrPort, error) {
	if value == "" {
		return netip.AddrPort{}, nil
	}
	address, err := netip.ParseAddrPort(value)
	if err != nil || address.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("%q: want an address and a port such as 0.0.0.0:9645", value)
	}
	if management.IsPort(address.Port()) {
		return netip.AddrPort{}, fmt.Errorf("the port %d is a role's own, for its management", address.Port())
	}
	return address, nil
}

// labels parses "run=1 role=backend", and puts the instance before them.
func labels(instance, value string) ([]metrics.Label, error) {
	list := []metrics.Label{{Name: "instance", Value: instance}}
	for _, entry := range strings.Fields(value) {
		name, text, found := strings.Cut(entry, "=")
		if !found || text == "" || !labelName.MatchString(name) {
			return nil, fmt.Errorf("%q: want a label such as role=backend", entry)
		}
		if metrics.Taken(name) || slices.ContainsFunc(list, func(l metrics.Label) bool { return l.Name == name }) {
			return nil, fmt.Errorf("the label %q is taken", name)
		}
		list = append(list, metrics.Label{Name: name, Value: text})
	}
	return list, nil
}

// scrapes parses "name=http://… name=http://…".
func scrapes(value string) ([]Scrape, error) {
	var list []Scrape
	taken := map[string]bool{"samples": true, "capture": true, "events": true}
	for _, entry := range strings.Fields(value) {
		name, address, found := strings.Cut(entry, "=")
		if !found {
			return nil, fmt.Errorf("%q: want name=address", entry)
		}
		if err := matches(scrapeName, name, "a name such as tomcat"); err != nil {
			return nil, err
		}
		if taken[name] {
			return nil, fmt.Errorf("the name %q is taken", name)
		}
		taken[name] = true
		if address == "" {
			return nil, fmt.Errorf("%q: no address", entry)
		}
		if err := optionalURL(address); err != nil {
			return nil, err
		}
		list = append(list, Scrape{Name: name, Address: address})
	}
	return list, nil
}
