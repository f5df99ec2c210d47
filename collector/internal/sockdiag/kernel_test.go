package sockdiag

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"connlab/collector/internal/eventually"
	"connlab/collector/internal/netns"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

func TestTheKernelTellsOfListenersOfBothFamilies(t *testing.T) {
	netns.Require(t)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
	}
	listeners, err := dial(t).Listeners(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"127.0.0.1", "::1", "::"} {
		if !slices.ContainsFunc(listeners, func(l Listener) bool { return l.Address.String() == want }) {
			t.Errorf("no listener on %s in %v", want, listeners)
		}
	}
}

func TestTheKernelFiltersByState(t *testing.T) {
	netns.Require(t)
	// Java's listeners are dual-stack: the peers of such a one must come out as IPv4.
	listener, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	server := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
	pair := func() (client, accepted net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp4", server.String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err = listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return client, accepted
	}
	client, accepted := pair()
	defer func() { _, _ = client.Close(), accepted.Close() }()
	first, second := pair()
	// The side that closes first keeps TIME_WAIT; wait until the other side has seen the close.
	_ = first.Close()
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection is still open")
	}
	_ = second.Close()

	conn := dial(t)
	count := func(states StateSet) map[string]int {
		t.Helper()
		counts := map[string]int{}
		err := conn.Sockets(states, func(s Socket) {
			switch server {
			case s.Local:
				counts[s.State.String()+" server"]++
			case s.Peer:
				counts[s.State.String()+" client"]++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	eventually.Holds(t, "TIME_WAIT", func() bool { return len(count(TimeWaiting)) > 0 })
	if got := count(Connections); len(got) != 2 || got["ESTABLISHED server"] != 1 || got["ESTABLISHED client"] != 1 {
		t.Errorf("connections: %v", got)
	}
	if got := count(TimeWaiting); len(got) != 1 || got["TIME_WAIT client"] != 1 {
		t.Errorf("TIME_WAIT: %v", got)
	}
}

func dial(t *testing.T) *Conn {
	t.Helper()
	conn, err := Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
