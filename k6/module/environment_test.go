package module

import (
	"testing"
	"time"
)

func TestTheConnectTimeout(t *testing.T) {
	for text, wanted := range map[string]time.Duration{
		"1ms": time.Millisecond, "30000ms": 30 * time.Second, "999999999ms": 999999999 * time.Millisecond,
		"": 0, "0ms": 0, "30s": 0, "30000": 0, "-1ms": 0, "1.5ms": 0, "1ms ": 0, "1ms\n": 0, "1000000000ms": 0,
	} {
		timeout, err := connectTimeout(func(string) (string, bool) { return text, true })
		if timeout != wanted || (err == nil) != (wanted != 0) {
			t.Errorf("%q is %v, %v", text, timeout, err)
		}
	}
	unset := func(string) (string, bool) { return "", false }
	if timeout, err := connectTimeout(unset); timeout != 30*time.Second || err != nil {
		t.Errorf("unset is %v, %v", timeout, err)
	}
}
