package config

import (
	"maps"
	"strings"
	"testing"
	"time"
)

var good = map[string]string{
	"CONNLAB_UPSTREAMS":               "backend-1:8080 backend-2:8080",
	"CONNLAB_MAX_IDLE_CONNS":          "100",
	"CONNLAB_MAX_IDLE_CONNS_PER_HOST": "2",
	"CONNLAB_MAX_CONNS_PER_HOST":      "0",
	"CONNLAB_IDLE_CONN_TIMEOUT":       "90000ms",
	"CONNLAB_RESPONSE_HEADER_TIMEOUT": "0ms",
	"CONNLAB_DIAL_TIMEOUT":            "30000ms",
	"CONNLAB_SERVER_IDLE_TIMEOUT":     "0ms",
	"CONNLAB_DISABLE_KEEP_ALIVES":     "false",
}

func from(environment map[string]string) (Config, error) {
	return FromEnvironment(func(name string) (string, bool) {
		value, found := environment[name]
		return value, found
	})
}

func TestEachSettingIsRead(t *testing.T) {
	got, err := from(good)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Upstreams) != 2 || got.Upstreams[1] != "backend-2:8080" {
		t.Errorf("upstreams: %v", got.Upstreams)
	}
	got.Upstreams = nil
	want := Config{MaxIdleConns: 100, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, DialTimeout: 30 * time.Second}
	if got.MaxIdleConns != want.MaxIdleConns || got.MaxIdleConnsPerHost != want.MaxIdleConnsPerHost ||
		got.IdleConnTimeout != want.IdleConnTimeout || got.DialTimeout != want.DialTimeout || got.DisableKeepAlives {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	for name := range good {
		environment := maps.Clone(good)
		delete(environment, name)
		if _, err := from(environment); err == nil || err.Error() != name+" is missing" {
			t.Errorf("without %s: %v", name, err)
		}
	}
	_, err := from(nil)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(good) {
		t.Errorf("%d lines for %d missing settings: %v", len(lines), len(good), err)
	}
}

func TestABadValueIsRefusedInOneLine(t *testing.T) {
	integers := []string{"", " ", "-1", "+1", "1.5", "010", "0x10", "1k", "1000001", "99999999999999999999", "1\n2", "١"}
	durations := []string{"", "ms", "60", "60s", "-1ms", "1.5ms", "60 ms", "086ms", "86400001ms", "60000MS", "1h"}
	bad := map[string][]string{
		"CONNLAB_MAX_IDLE_CONNS":          integers,
		"CONNLAB_MAX_IDLE_CONNS_PER_HOST": append([]string{"0"}, integers...),
		"CONNLAB_MAX_CONNS_PER_HOST":      integers,
		"CONNLAB_IDLE_CONN_TIMEOUT":       durations,
		"CONNLAB_RESPONSE_HEADER_TIMEOUT": durations,
		"CONNLAB_DIAL_TIMEOUT":            durations,
		"CONNLAB_SERVER_IDLE_TIMEOUT":     durations,
		"CONNLAB_DISABLE_KEEP_ALIVES":     {"", "on", "True", "1", "true "},
		"CONNLAB_UPSTREAMS": {
			"", " ", "backend-1", ":8080", "backend-1:", "backend-1:0", "backend-1:65536", "backend-1:x", "a:80:80", "-a:80",
			"a_b:80", "http://a:80", "a:80,b:80",
		},
	}
	for name, values := range bad {
		for _, value := range values {
			environment := maps.Clone(good)
			environment[name] = value
			_, err := from(environment)
			if err == nil {
				t.Errorf("%s=%q was accepted", name, value)
			} else if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), name+" is ") {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}
