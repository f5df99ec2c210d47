package filter

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"connlab/collector/internal/netns"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

func TestWhoConnectsIsToldWhatTheRuleSays(t *testing.T) {
	netns.Require(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for answer, want := range map[string]error{
		"none":             nil,
		"port-unreachable": syscall.ECONNREFUSED,
		"host-prohibited":  syscall.EHOSTUNREACH,
	} {
		rule, err := NewRule(port, answer)
		if err != nil {
			t.Fatal(err)
		}
		if err := rule.Add(); err != nil {
			t.Fatal(err)
		}
		if stands, err := rule.Stands(); err != nil || !stands {
			t.Errorf("%s: after Add: %v, %v", answer, stands, err)
		}
		_, err = net.DialTimeout("tcp4", listener.Addr().String(), 200*time.Millisecond)
		var late net.Error
		if want == nil && (!errors.As(err, &late) || !late.Timeout()) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: the dial ended with %v", answer, err)
		}
		if err := rule.Remove(); err != nil {
			t.Fatal(err)
		}
		if stands, err := rule.Stands(); err != nil || stands {
			t.Errorf("%s: after Remove: %v, %v", answer, stands, err)
		}
		connection, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
	}
}

func TestWhatNoRuleCanSayIsRefused(t *testing.T) {
	for _, answer := range []string{"", "reset"} {
		if _, err := NewRule(80, answer); err == nil {
			t.Errorf("%q was taken", answer)
		}
	}
	for _, port := range []int{0, 1 << 16} {
		if _, err := NewRule(port, "none"); err == nil {
			t.Errorf("port %d was taken", port)
		}
	}
}
