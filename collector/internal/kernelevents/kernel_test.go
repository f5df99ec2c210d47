package kernelevents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/eventually"
	"connlab/collector/internal/netns"
	"connlab/collector/internal/schematest"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

// An event is any line of events.jsonl.
type event struct {
	Kind      string
	TimeUs    int64 `json:"time_us"`
	Local     string
	LocalPort int `json:"local_port"`
	Peer      string
	PeerPort  int    `json:"peer_port"`
	WaitUs    *int64 `json:"wait_us"`
	By        string
	Flags     string
	Reason    string
	Error     string
	Lost      int64
	Events    int64
}

// recordWhile returns the events that happen during the work. Where the kernel or the rights do not allow the programs,
// it skips the test and says why.
func recordWhile(t *testing.T, work func()) []event {
	t.Helper()
	netns.Require(t)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Role: "backend-1", Path: path}, func(reason error) { listening <- reason })
	}()
	if err := <-listening; err != nil {
		stop()
		<-ended
		t.Skip(err)
	}
	work()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

func read(t *testing.T, path string) []event {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events []event
	for line := range bytes.Lines(text) {
		schematest.Validate(t, "kernel-events", line)
		var read event
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatal(err)
		}
		events = append(events, read)
	}
	last := events[len(events)-1]
	if events[0].Kind != "header" || last.Kind != "end" || int(last.Events) != len(events)-2 {
		t.Errorf("the file begins with %+v and ends with %+v", events[0], last)
	}
	return events[1:]
}

func of(events []event, kind string) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.Kind != kind })
}

func port(address net.Addr) int { return address.(*net.TCPAddr).Port }

func TestAWaitInTheAcceptQueueIsMeasured(t *testing.T) {
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			// For each connection the least and the most that it can have waited.
			bounds := map[int][2]time.Duration{}
			events := recordWhile(t, func() {
				listener, err := net.Listen("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = listener.Close() }()
				type dialed struct {
					conn         net.Conn
					began, ended time.Time
				}
				for _, delay := range []time.Duration{0, 2, 7, 18} {
					// Three connections wait together: an event loop that comes late takes all of them.
					var waiting []dialed
					for range 3 {
						began := time.Now()
						conn, err := net.Dial("tcp", listener.Addr().String())
						if err != nil {
							t.Fatal(err)
						}
						waiting = append(waiting, dialed{conn, began, time.Now()})
					}
					time.Sleep(delay * time.Millisecond)
					for _, each := range waiting {
						began := time.Now()
						conn, err := listener.Accept()
						if err != nil {
							t.Fatal(err)
						}
						bounds[port(each.conn.LocalAddr())] = [2]time.Duration{began.Sub(each.ended), time.Since(each.began)}
						_ = conn.Close()
						_ = each.conn.Close()
					}
				}
			})
			accepted := of(events, "accepted")
			if len(accepted) != len(bounds) || len(of(events, "queued")) != len(bounds) {
				t.Errorf("%d accepted, %d queued, want %d", len(accepted), len(of(events, "queued")), len(bounds))
			}
			for _, each := range accepted {
				bound, known := bounds[each.PeerPort]
				if !known || each.WaitUs == nil {
					t.Errorf("unknown connection or wait: %+v", each)
					continue
				}
				wait := time.Duration(*each.WaitUs+1) * time.Microsecond
				if wait < bound[0] || wait > bound[1] {
					t.Errorf("waited %v, want %v to %v", wait, bound[0], bound[1])
				}
				if each.By != strings.TrimSpace(string(own)) {
					t.Errorf("accepted by %q, want %q", each.By, own)
				}
			}
		})
	}
}

func TestAResetSaysByWhomAndWhy(t *testing.T) {
	var closed, lingering, listening int
	events := recordWhile(t, func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listening = port(listener.Addr())
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		lingering = port(conn.LocalAddr())
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		_ = listener.Close()
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", listening)); err == nil {
			_ = conn.Close()
			t.Error("a closed port took a connection")
		}
	})
	for _, each := range of(events, "connect_ended") {
		if each.PeerPort != listening || each.Error != "ECONNREFUSED" {
			t.Errorf("%+v", each)
		}
		closed = each.LocalPort
	}
	sent, received := of(events, "reset_sent"), of(events, "reset_received")
	if len(sent) != 2 || len(received) != 2 {
		t.Fatalf("sent %+v, received %+v, want two of each", sent, received)
	}
	if sent[0].LocalPort != lingering || sent[0].PeerPort != listening || sent[0].By == "" {
		t.Errorf("the client's reset: %+v", sent[0])
	}
	if sent[1].LocalPort != listening || sent[1].PeerPort != closed || closed == 0 {
		t.Errorf("the closed port's reset: %+v, the client's port %d", sent[1], closed)
	}
	if received[0].LocalPort != listening || received[1].LocalPort != closed {
		t.Errorf("received %+v", received)
	}
}

func TestARetransmittedSYNIsSeenAndAnotherNamespaceIsNot(t *testing.T) {
	var full int
	events := recordWhile(t, func() {
		peer, err := netns.NewPeer()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		// In the other namespace, over its own loopback.
		peer.Do(func() {
			if conn, err := net.Dial("tcp", "127.0.0.1:9"); err == nil {
				_ = conn.Close()
			}
		})
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		if err := cmp.Or(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
			t.Fatal(err)
		}
		name, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		full = name.(*unix.SockaddrInet4).Port
		address := fmt.Sprintf("127.0.0.1:%d", full)
		first, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = first.Close() }()
		// The queue is full: the kernel drops this SYN, and sends another after a second. Then there is room.
		second := make(chan error, 1)
		go func() {
			conn, err := net.DialTimeout("tcp", address, eventually.Patience)
			if err == nil {
				_ = conn.Close()
			}
			second <- err
		}()
		time.Sleep(100 * time.Millisecond)
		if taken, _, err := unix.Accept(fd); err != nil {
			t.Error(err)
		} else {
			_ = unix.Close(taken)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
	for _, each := range events {
		if each.PeerPort == 9 {
			t.Errorf("an event of another namespace: %+v", each)
		}
	}
	retransmitted := of(events, "retransmitted")
	if len(retransmitted) == 0 {
		t.Fatal("no retransmission")
	}
	for _, each := range retransmitted {
		if each.Flags != "S" || each.PeerPort != full {
			t.Errorf("%+v", each)
		}
	}
	if queued := of(events, "queued"); len(queued) != 2 {
		t.Errorf("queued %+v", queued)
	}
}
