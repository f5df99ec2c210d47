package address

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/netns"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

// Another host reaches a server under both of its addresses, and the server's own connections still leave from the first.
func TestAnInterfaceHasASecondAddress(t *testing.T) {
	netns.Require(t)
	second := netip.MustParsePrefix("10.99.0.77/24")
	other, err := netns.NewPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := Add("eth0", second); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	var reached []string
	other.Do(func() {
		for _, address := range []string{netns.Address, second.Addr().String()} {
			conn, err := net.Dial("tcp4", net.JoinHostPort(address, port))
			if err != nil {
				t.Errorf("%s: %v", address, err)
				continue
			}
			reached = append(reached, conn.RemoteAddr().(*net.TCPAddr).IP.String())
			_ = conn.Close()
		}
	})
	if want := []string{netns.Address, second.Addr().String()}; !slices.Equal(reached, want) {
		t.Errorf("reached %v, want %v", reached, want)
	}
	out, err := net.Dial("udp4", netns.PeerAddress+":9")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if from := out.LocalAddr().(*net.UDPAddr).IP.String(); from != netns.Address {
		t.Errorf("it sends from %s, want %s", from, netns.Address)
	}
	if err := Add("eth0", second); !errors.Is(err, unix.EEXIST) {
		t.Errorf("the same address once more: %v", err)
	}
}

// A client may come at once: the kernel asks nobody else for the address.
func TestAnInterfaceHasAnIPv6AddressAtOnce(t *testing.T) {
	netns.Require(t)
	other, err := netns.NewPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := Add("eth0", netip.MustParsePrefix("fd99::77/64")); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp6", "[fd99::77]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	other.Do(func() {
		conn, err := net.Dial("tcp6", listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
}

func TestWhatCannotBeAddedIsAnError(t *testing.T) {
	for name, prefix := range map[string]string{"eth7": "10.99.0.77/24", "eth8": "fd99::7/64"} {
		if err := Add(name, netip.MustParsePrefix(prefix)); err == nil {
			t.Errorf("%s was added to %s", prefix, name)
		}
	}
}

func TestOnlyAnAcknowledgementIsSuccess(t *testing.T) {
	for _, reply := range [][]byte{nil, make([]byte, 12), make([]byte, replyBytes)} {
		if err := acknowledged(reply); err == nil {
			t.Errorf("% x is taken for an acknowledgement", reply)
		}
	}
}
