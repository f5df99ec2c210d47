package module

import (
	"testing"
	"time"

	"connlab/k6/dial"
)

func TestTheConnectTimeout(t *testing.T) {
	for text, wanted := range map[string]time.Duration{
		"1ms": time.Millisecond, "30000ms": 30 * time.Second, "999999999ms": 999999999 * time.Millisecond,
		"": 0, "0ms": 0, "30s": 0, "30000": 0, "-1ms": 0, "1.5ms": 0, "1ms ": 0, "1ms\n": 0, "1000000000ms": 0,
	} {
		settings, err := connectionSettings(only("CONNLAB_CONNECT_TIMEOUT", text))
		if (err == nil) != (wanted != 0) || err == nil && settings.ConnectTimeout != wanted {
			t.Errorf("%q is %v, %v", text, settings.ConnectTimeout, err)
		}
	}
}

func TestTLSResumption(t *testing.T) {
	for text, wanted := range map[string]bool{"true": true, "false": false, "": false} {
		if settings, err := connectionSettings(only("CONNLAB_TLS_RESUMPTION", text)); settings.TLSResumption != wanted || err != nil {
			t.Errorf("%q is %v, %v", text, settings.TLSResumption, err)
		}
	}
	if _, err := connectionSettings(only("CONNLAB_TLS_RESUMPTION", "yes")); err == nil {
		t.Error("'yes' is taken")
	}
}

func TestTheSettingsWithoutTheLab(t *testing.T) {
	settings, err := connectionSettings(func(string) (string, bool) { return "", false })
	if settings != (dial.Settings{ConnectTimeout: 30 * time.Second}) || err != nil {
		t.Errorf("unset is %v, %v", settings, err)
	}
}

func only(wanted, text string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name != wanted {
			return "", false
		}
		return text, true
	}
}
