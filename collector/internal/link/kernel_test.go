package link

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"connlab/collector/internal/netns"
	"connlab/collector/internal/ping"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

// patience is far more than any of this takes on a busy machine.
const patience = 30 * time.Second

// serving holds the packets to a new peer until the test ends, and gives the peer and where to ask for the report.
func serving(t *testing.T, settings Settings) (*netns.Peer, string) {
	t.Helper()
	netns.Require(t)
	peer, err := netns.NewPeer()
	if err != nil {
		t.Fatal(err)
	}
	settings.To, settings.Addresses = "peer", []netip.Addr{netip.MustParseAddr(netns.PeerAddress)}
	settings.LossBurst, settings.Queue = max(settings.LossBurst, 1), max(settings.Queue, 1000)
	ctx, stop := context.WithCancel(context.Background())
	socket, ready, ended := filepath.Join(t.TempDir(), "socket"), make(chan struct{}), make(chan error, 1)
	go func() { ended <- Serve(ctx, "eth0", socket, []Settings{settings}, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_, err := tool("iptables", "-t", "mangle", "-F")
		_, gone := tool("ip", "link", "del", "eth0")
		if err := errors.Join(err, gone); err != nil {
			t.Error(err)
		}
		peer.Close()
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return peer, socket
}

func TestEchoesTakeTheDelayAndSomeAreLost(t *testing.T) {
	_, socket := serving(t, Settings{DelayMs: 20, LossPercent: 30})
	result, err := ping.Measure(t.Context(), netip.MustParseAddr(netns.PeerAddress), 200, time.Millisecond, patience/30)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Read("eth0", socket)
	if err != nil || report.Way != NFQueue || len(report.Links) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	state := report.Links[0]
	if state.Packets != 200 || state.Lost != int64(result.Sent-result.Received) || state.Lost < 20 || state.Lost > 120 {
		t.Errorf("of %d packets %d are lost; the echoes: %+v", state.Packets, state.Lost, result)
	}
	if result.MinUs == nil || *result.MinUs < 20_000 {
		t.Errorf("a round trip took %v µs", result.MinUs)
	}
	if state.Unqueued == nil || *state.Unqueued != 0 {
		t.Errorf("the kernel dropped %v", state.Unqueued)
	}
}

func TestALinkIsChangedWhileItHoldsPackets(t *testing.T) {
	_, socket := serving(t, Settings{DelayMs: 1})
	report, err := Read("eth0", socket)
	if err != nil {
		t.Fatal(err)
	}
	other := report.Links[0].Settings
	other.LossPercent = 100
	if report, err = Change(socket, []Settings{other}); err != nil || report.Links[0].LossPercent != 100 {
		t.Fatalf("%+v, %v", report, err)
	}
	result, err := ping.Measure(t.Context(), netip.MustParseAddr(netns.PeerAddress), 10, time.Millisecond, patience/300)
	if err != nil || result.Received != 0 {
		t.Errorf("%d echoes came back, %v", result.Received, err)
	}
	other.To = "another"
	if _, err := Change(socket, []Settings{other}); err == nil {
		t.Error("it took settings of another link")
	}
}

// conversation connects to the peer, and gives both ends.
func conversation(t *testing.T, peer *netns.Peer) (here, there net.Conn) {
	t.Helper()
	var listener net.Listener
	var err error
	peer.Do(func() { listener, err = net.Listen("tcp4", netns.PeerAddress+":8080") })
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		connection, _ := listener.Accept()
		accepted <- connection
	}()
	here, err = net.DialTimeout("tcp4", netns.PeerAddress+":8080", patience)
	if err != nil {
		t.Fatal(err)
	}
	there = <-accepted
	t.Cleanup(func() { _, _, _ = here.Close(), there.Close(), listener.Close() })
	return here, there
}

func say(t *testing.T, from, to net.Conn) {
	t.Helper()
	word := []byte("word")
	if _, err := from.Write(word); err != nil {
		t.Fatal(err)
	}
	_ = to.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(to, word); err != nil {
		t.Fatal(err)
	}
}

func TestAConnectionWhoseFirstSynIsDroppedComesASecondLater(t *testing.T) {
	peer, _ := serving(t, Settings{DropSyns: 1})
	begun := time.Now()
	here, there := conversation(t, peer)
	if took := time.Since(begun); took < time.Second {
		t.Errorf("it took %v", took)
	}
	say(t, here, there)
}

func TestAMiddleboxForgetsAnIdleConnection(t *testing.T) {
	peer, socket := serving(t, Settings{ForgetIdleMs: 200})
	here, there := conversation(t, peer)
	say(t, here, there)
	time.Sleep(400 * time.Millisecond)
	if _, err := here.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	_ = there.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if n, err := there.Read(make([]byte, 4)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes came through, %v", n, err)
	}
	if report, err := Read("eth0", socket); err != nil || report.Links[0].Lost == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestAMiddleboxResetsWhatItForgot(t *testing.T) {
	peer, _ := serving(t, Settings{ForgetIdleMs: 200, ForgetWithReset: true})
	here, there := conversation(t, peer)
	say(t, here, there)
	time.Sleep(400 * time.Millisecond)
	_, _ = here.Write([]byte("word"))
	_ = here.SetReadDeadline(time.Now().Add(patience))
	if _, err := here.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the sender sees %v", err)
	}
}

// A response of many packets is on its way as a whole: a socket takes a packet that the link holds for sent.
func TestALongAnswerComesWhole(t *testing.T) {
	peer, _ := serving(t, Settings{DelayMs: 20})
	here, there := conversation(t, peer)
	const long = 1 << 20
	go func() { _, _ = here.Write(make([]byte, long)) }()
	_ = there.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.ReadFull(there, make([]byte, long)); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
