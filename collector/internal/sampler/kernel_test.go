package sampler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// A record is any line of samples.jsonl.
type record struct {
	Kind     string
	TimeUs   int64 `json:"time_us"`
	MonoUs   int64 `json:"mono_us"`
	Full     bool
	Counters map[string]int64
	Listen   []struct {
		Address             string
		Port                int
		Depth, Limit, Drops int
	}
	Unix []struct {
		Path         string
		Depth, Limit int
	}
	Groups []struct {
		State, Side, Local, Peer string
		Port, Count              int
	}
	Unaccepted []struct {
		Local, Peer string
		Port        int
		PeerPort    int `json:"peer_port"`
	}
	Host struct {
		Total int64 `json:"cpu_total_ms"`
		Idle  int64 `json:"cpu_idle_ms"`
	}
	Reason string
	Ticks  int64
	Gaps   int64
	CPUms  int64 `json:"cpu_ms"`
}

func TestAnOverflowOfTheAcceptQueueIsSeenByEachInstrument(t *testing.T) {
	netns.Require(t)
	port := listenWithoutAccepting(t, 1)
	const served, turnedAway = 2, 3
	synsMax := int64(turnedAway)
	records := recordWhile(t, func(string) {
		// The queue takes backlog + 1 connections; of all others each SYN is dropped. Each client gives up before its
		// kernel sends a second SYN after a second, except on a machine that is too busy for that.
		for i := range served + turnedAway {
			began, timeout := time.Now(), eventually.Patience
			if i >= served {
				timeout = 300 * time.Millisecond
			}
			conn, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", port), timeout)
			synsMax += int64(time.Since(began) / time.Second)
			if (err == nil) != (i < served) {
				t.Errorf("connection %d: %v", i, err)
			}
			if err == nil {
				defer func() { _ = conn.Close() }()
			}
		}
	})
	counters := map[string]int64{}
	var first map[string]int64
	depth, drops := 0, int64(0)
	for _, r := range records {
		if r.Kind != "tick" {
			continue
		}
		for name, value := range r.Counters {
			counters[name] = value
		}
		if first == nil {
			first = r.Counters
		}
		for _, l := range r.Listen {
			if l.Port == port {
				if l.Limit != 1 || l.Address != "127.0.0.1" {
					t.Errorf("listener %+v, want one on 127.0.0.1 with the limit 1", l)
				}
				depth, drops = max(depth, l.Depth), max(drops, int64(l.Drops))
			}
		}
	}
	if depth != served || drops < turnedAway || drops > synsMax {
		t.Errorf("the listener's depth was %d and its drops %d, want %d and %d to %d", depth, drops, served, turnedAway, synsMax)
	}
	for _, name := range []string{"TcpExt.ListenOverflows", "TcpExt.ListenDrops"} {
		if got := counters[name] - first[name]; got != drops {
			t.Errorf("%s grew by %d, and the listener's drops by %d", name, got, drops)
		}
	}
}

func TestAFullUnixSocketIsSeenAndAnIdleOneOnFullLinesAlone(t *testing.T) {
	netns.Require(t)
	path := filepath.Join(t.TempDir(), "full.sock")
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(listener) }()
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrUnix{Name: path}), unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	idle, err := net.Listen("unix", "@idle")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	records := recordWhile(t, func(string) {
		// The queue takes backlog + 1 connections; the next one is refused at once.
		for i := range 3 {
			client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Close(client) })
			err = unix.Connect(client, &unix.SockaddrUnix{Name: path})
			if (err == nil) != (i < 2) || i == 2 && !errors.Is(err, unix.EAGAIN) {
				t.Errorf("connection %d: %v", i, err)
			}
		}
	})
	deepest, idleLines := 0, 0
	for _, r := range records {
		for _, one := range r.Unix {
			if one.Path == path && one.Limit == 1 {
				deepest = max(deepest, one.Depth)
			}
			if one.Path == "@idle" {
				idleLines++
				if !r.Full {
					t.Error("a socket that nobody waits on is on a line that is not full")
				}
			}
		}
	}
	if deepest != 2 || idleLines == 0 {
		t.Errorf("the greatest depth was %d, want 2; the idle socket was on %d lines", deepest, idleLines)
	}
}

func TestTimeWaitIsCountedOnTheSideThatHasIt(t *testing.T) {
	netns.Require(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	connect := func() (client, server net.Conn) {
		client, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if server, err = listener.Accept(); err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	records := recordWhile(t, func(string) {
		for i := range 8 {
			first, second := connect() // the client closes first
			if i < 3 {
				first, second = second, first // the server does
			}
			_ = first.Close()
			if _, err := second.Read(make([]byte, 1)); err == nil {
				t.Fatal("still open")
			}
			_ = second.Close()
		}
		client, server := connect()
		t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	})
	got := map[string]int{}
	for _, r := range records {
		if r.Kind == "sockets" || r.Kind == "time_wait" {
			clear(got)
		}
		for _, g := range r.Groups {
			if g.Port == port {
				got[r.Kind+g.State+g.Side] = g.Count
			}
		}
		if r.Kind == "sockets" && len(r.Groups) > 0 {
			if got["socketsESTABLISHEDserver"] != 1 || got["socketsESTABLISHEDclient"] != 1 {
				t.Errorf("connections: %v", got)
			}
		}
	}
	if len(got) != 2 || got["time_waitclient"] != 5 || got["time_waitserver"] != 3 {
		t.Errorf("TIME_WAIT by side: %v, want 5 of the client and 3 of the server", got)
	}
}

func TestAConnectionIsUnacceptedUntilItsProgramTakesIt(t *testing.T) {
	netns.Require(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	s := open(t, filepath.Join(t.TempDir(), "samples.jsonl"), 50)
	defer func() { _ = s.close() }()
	unaccepted := func() (ports []int) {
		t.Helper()
		s.line = s.line[:0]
		if err := s.appendTick(time.Now(), 0, false); err != nil {
			t.Fatal(err)
		}
		s.line = s.line[:0]
		if err := s.appendSockets(false); err != nil {
			t.Fatal(err)
		}
		var found record
		if err := json.Unmarshal(s.line, &found); err != nil {
			t.Fatal(err)
		}
		for _, each := range found.Unaccepted {
			if each.Local != "127.0.0.1" || each.Port != listener.Addr().(*net.TCPAddr).Port {
				t.Errorf("%+v is at another listener", each)
			}
			ports = append(ports, each.PeerPort)
		}
		return ports
	}
	if got := unaccepted(); got != nil {
		t.Errorf("nobody came, and %v wait", got)
	}
	var ports []int
	var clients []net.Conn
	for range 2 {
		client, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		clients, ports = append(clients, client), append(ports, client.LocalAddr().(*net.TCPAddr).Port)
	}
	slices.Sort(ports)
	if got := unaccepted(); !slices.Equal(got, ports) {
		t.Errorf("%v wait, want %v", got, ports)
	}
	// Who has left by FIN waits all the same.
	if err := clients[1].Close(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the one that left waits", func() bool {
		return slices.Equal(unaccepted(), ports) && bytes.Contains(s.line, []byte("CLOSE_WAIT"))
	})
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if got, want := unaccepted(), clients[1].LocalAddr().(*net.TCPAddr).Port; !slices.Equal(got, []int{want}) {
		t.Errorf("after one was accepted %v wait, want %v", got, want)
	}
	second, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if got := unaccepted(); got != nil {
		t.Errorf("after both were accepted %v wait", got)
	}
}

func TestTheKernelIsAskedAgainOnceAnythingMoved(t *testing.T) {
	netns.Require(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	s := open(t, filepath.Join(t.TempDir(), "samples.jsonl"), 50)
	defer func() { _ = s.close() }()
	// What a tick does, and whether it asked.
	asked := func() bool {
		t.Helper()
		s.line = s.line[:0]
		if err := s.appendTick(time.Now(), 0, false); err != nil {
			t.Fatal(err)
		}
		held := s.connections.holds(s) && s.waiting.holds(s)
		if err := s.appendSockets(true); err != nil {
			t.Fatal(err)
		}
		return !held
	}
	if !asked() || asked() {
		t.Fatal("the first dump must be taken, and must still be the second")
	}
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what, seen string
		change     func() error
	}{
		{"a connection", `"state":"ESTABLISHED","side":"client"`, func() error { return nil }},
		{"an answer", `"state":"ESTABLISHED","side":"client"`, func() error { _, err := server.Write([]byte("x")); return err }},
		{"a close", `"state":"CLOSE_WAIT","side":"client"`, server.Close},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if !asked() {
			t.Errorf("after %s the kernel was not asked", step.what)
		}
		if !bytes.Contains(s.line, []byte(step.seen)) {
			t.Errorf("after %s there is no %s in %s", step.what, step.seen, s.line)
		}
		// An ACK may come a moment later.
		eventually.Holds(t, "nothing moves", func() bool { return !asked() })
		if !bytes.Contains(s.line, []byte(step.seen)) {
			t.Errorf("later there is no %s in %s", step.seen, s.line)
		}
	}
	_ = client.Close()
}

func TestTheRecordBeginsAndEndsInGoodOrder(t *testing.T) {
	netns.Require(t)
	records := recordWhile(t, func(path string) { eventually.Has(t, path, `"kind":"tick"`, 10) })
	first, last := records[0], records[len(records)-1]
	if first.Kind != "header" || last.Kind != "end" || last.Reason != "signal" {
		t.Errorf("from %q to %q (%s)", first.Kind, last.Kind, last.Reason)
	}
	var ticks []record
	for _, r := range records {
		if r.Kind == "tick" {
			ticks = append(ticks, r)
		}
	}
	if !ticks[0].Full || ticks[1].Full || !ticks[len(ticks)-1].Full {
		t.Error("the first and the last tick, and no other here, must have all counters")
	}
	if len(ticks[0].Counters) < 200 {
		t.Errorf("%d counters", len(ticks[0].Counters))
	}
	if last.Ticks != int64(len(ticks)) {
		t.Errorf("the last line counts %d ticks, the file has %d", last.Ticks, len(ticks))
	}
	for _, tick := range ticks {
		if tick.Host.Total <= tick.Host.Idle {
			t.Errorf("a tick tells of the machine: %+v", tick.Host)
		}
	}
	for i := 1; i < len(ticks); i++ {
		wall, monotonic := ticks[i].TimeUs-ticks[i-1].TimeUs, ticks[i].MonoUs-ticks[i-1].MonoUs
		if difference := wall - monotonic; difference < -20_000 || difference > 20_000 {
			t.Errorf("between two ticks %d µs passed by the wall clock, %d by the monotonic one", wall, monotonic)
		}
	}
}

func TestAnotherPartsErrorIsTheReason(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	sampler := open(t, path, 50)
	if err := sampler.Run(ctx, func() { cancel(errors.New("the scrape failed")) }); err != nil {
		t.Fatal(err)
	}
	records := readRecords(t, path)
	if reason := records[len(records)-1].Reason; reason != "error: the scrape failed" {
		t.Errorf("reason %q", reason)
	}
}

func TestAFullDiskEndsTheRecordAndIsItsReason(t *testing.T) {
	netns.Require(t) // a mount takes the same privilege
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(disk, 0) }()
	path := filepath.Join(disk, "samples.jsonl")
	sampler := open(t, path, 1000)
	err := sampler.Run(context.Background(), func() {
		// Something else fills the disk, except for the room that the record has reserved.
		_ = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 2<<20), 0o600)
	})
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want no space left", err)
	}
	records := readRecords(t, path)
	last := records[len(records)-1]
	if last.Kind != "end" || !strings.Contains(last.Reason, "no space left on device") {
		t.Errorf("the last line is %+v", last)
	}
}

func TestAnExistingRecordIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	writeFile(t, path, "precious")
	if _, err := Open(Config{Role: "test", RateHz: 50, Path: path, ProcRoot: "/proc"}); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file holds %q (%v)", text, err)
	}
}

func open(t *testing.T, path string, rateHz int) *Sampler {
	t.Helper()
	sampler, err := Open(Config{Role: "test", RateHz: rateHz, Path: path, ProcRoot: "/proc"})
	if err != nil {
		t.Fatal(err)
	}
	return sampler
}

// recordWhile samples at 50 Hz into the file at path while work is done, and returns all lines.
func recordWhile(t *testing.T, work func(path string)) []record {
	t.Helper()
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	sampler := open(t, path, 50)
	ctx, cancel := context.WithCancelCause(context.Background())
	started, ended := make(chan struct{}), make(chan error)
	go func() { ended <- sampler.Run(ctx, func() { close(started) }) }()
	<-started
	work(path)
	cancel(ErrStopped)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return readRecords(t, path)
}

func readRecords(t *testing.T, path string) []record {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var records []record
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var r record
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			t.Fatalf("line %d: %v", len(records)+1, err)
		}
		schematest.Validate(t, "samples", scanner.Bytes())
		records = append(records, r)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return records
}

// listenWithoutAccepting makes a listener whose accept queue holds backlog + 1 connections; Go's own have somaxconn.
func listenWithoutAccepting(t *testing.T, backlog int) (port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*unix.SockaddrInet4).Port
}
