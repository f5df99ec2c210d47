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

	"CONNLAB_SERVER_READ_HEADER_TIMEOUT": "0ms",
	"CONNLAB_TLS":                        "false",
	"CONNLAB_TLS_MIN":                    "TLSv1.2",
	"CONNLAB_TLS_MAX":                    "TLSv1.3",
	"CONNLAB_TLS_SESSION_TICKETS":        "true",
	"CONNLAB_TLS_HANDSHAKE_TIMEOUT":      "10000ms",
	"CONNLAB_TLS_CLIENT_SESSION_CACHE":   "0",

	"CONNLAB_HTTP2":                        "false",
	"CONNLAB_HTTP2_MAX_CONCURRENT_STREAMS": "250",
	"CONNLAB_UPSTREAM_HTTP2":               "false",
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

func TestWhatCannotBeReadIsNamedInOneLine(t *testing.T) {
	for name, value := range map[string]string{
		"CONNLAB_MAX_IDLE_CONNS":      "many\n",
		"CONNLAB_IDLE_CONN_TIMEOUT":   "60",
		"CONNLAB_DISABLE_KEEP_ALIVES": "on",
		"CONNLAB_TLS_MIN":             "TLSv1.4",
	} {
		environment := maps.Clone(good)
		environment[name] = value
		_, err := from(environment)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s=%q: %v", name, value, err)
		}
	}
}

func TestTLSNeedsCertificates(t *testing.T) {
	for _, name := range []string{"CONNLAB_TLS=true", "CONNLAB_UPSTREAM_TLS=backend"} {
		environment := maps.Clone(good)
		knob, value, _ := strings.Cut(name, "=")
		environment[knob] = value
		if _, err := from(environment); err == nil || err.Error() != "CONNLAB_CERTIFICATES is missing" {
			t.Errorf("%s: %v", name, err)
		}
		environment["CONNLAB_CERTIFICATES"] = "c2VjcmV0"
		if _, err := from(environment); err == nil || !strings.HasPrefix(err.Error(), "CONNLAB_CERTIFICATES: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	environment := maps.Clone(good)
	environment["CONNLAB_UPSTREAM_TLS"] = "any"
	if _, err := from(environment); err != nil {
		t.Error(err)
	}
}
