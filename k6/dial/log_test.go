package dial

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/netext"
	"go.k6.io/k6/lib/types"

	"connlab/k6/internal/fullqueue"
	"connlab/k6/record"
)

// patience is so long that only a hang takes longer, even on a busy machine.
const patience = 5 * time.Minute

type line struct {
	Kind      string
	ID, VU    uint64
	Local     *string
	Remote    *string
	Error     *string
	ErrorKind *string `json:"error_kind"`
	Sent      int64   `json:"bytes_sent"`
	Received  int64   `json:"bytes_received"`
}

// recorded is a log with a journal of its own.
type recorded struct {
	*Log

	t       *testing.T
	journal *record.Journal
	folder  string
}

func newRecorded(t *testing.T) *recorded {
	t.Helper()
	journal, folder := new(record.Journal), t.TempDir()
	if err := journal.Open(folder, "k6-1", nil); err != nil {
		t.Fatal(err)
	}
	return &recorded{Log: NewLog(journal), t: t, journal: journal, folder: folder}
}

// lines closes the journal and returns the lines below its header.
func (r *recorded) lines() []line {
	r.t.Helper()
	if err := r.journal.Close(); err != nil {
		r.t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(r.folder, "dials.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []line
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var one line
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all[1:]
}

// vuState is what k6 gives a VU, as far as Install looks at it. No name resolves.
func vuState() *lib.State {
	noNames := func(host string) ([]net.IP, error) { return nil, &net.DNSError{Name: host, IsNotFound: true} }
	resolver := netext.NewResolver(noNames, 0, types.DNSfirst, types.DNSpreferIPv4)
	return &lib.State{VUID: 1, Dialer: netext.NewDialer(net.Dialer{}, resolver), Transport: &http.Transport{}}
}

// dialer is a VU's dialer after Install.
func (r *recorded) dialer(connectTimeout time.Duration) *Dialer {
	r.t.Helper()
	state := vuState()
	if err := r.Install(state, Settings{ConnectTimeout: connectTimeout}); err != nil {
		r.t.Fatal(err)
	}
	return state.Dialer.(*Dialer)
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// answerWith accepts one connection, sends it a text and closes it.
func answerWith(listener net.Listener, text string) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, text)
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, 5))
	_ = conn.Close()
}

func TestAConnectionCountsItsBytesAndTellsWhoClosedFirst(t *testing.T) {
	log, listener := newRecorded(t), listen(t, "tcp", "127.0.0.1:0")
	go answerWith(listener, "hi")
	conn, err := log.dialer(patience).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	local := conn.LocalAddr().String()
	// The client's own deadline does not end the connection.
	_ = conn.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read returned %v", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	_, _ = io.WriteString(conn, "hello")
	if got, err := io.ReadAll(conn); string(got) != "hi" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = conn.Close()
	_ = conn.Close()
	lines := log.lines()
	if len(lines) != 2 || *lines[0].Local != local || *lines[0].Remote != listener.Addr().String() || lines[0].Error != nil {
		t.Fatalf("%+v", lines)
	}
	if closed := lines[1]; closed.Kind != "close" || closed.ID != 1 || closed.Sent != 5 || closed.Received != 2 ||
		closed.Error == nil || *closed.Error != "EOF" {
		t.Errorf("%+v", closed)
	}
}

func TestAConnectionThatTheClientClosesHasNoError(t *testing.T) {
	log, listener := newRecorded(t), listen(t, "tcp6", "[::1]:0")
	conn, err := log.dialer(patience).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		_, _ = conn.Read(make([]byte, 1))
		close(read)
	}()
	_ = conn.Close()
	<-read
	if lines := log.lines(); len(lines) != 2 || lines[1].Error != nil {
		t.Errorf("%+v", lines)
	}
}

func TestTheEndCutsDialsShortAndClosesConnections(t *testing.T) {
	log, listener := newRecorded(t), listen(t, "tcp", "127.0.0.1:0")
	dialer := log.dialer(patience)
	if _, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	late := log.begin(2)
	if written, failed := log.Finish(); written != 2 || failed != 1 {
		t.Errorf("%d written, %d failed", written, failed)
	}
	// A dial that ends before k6, but after the record, leaves nothing after the last lines.
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := log.connected(late, conn); got != conn {
		t.Errorf("a connection after the end is followed: %T", got)
	}
	_ = conn.Close()
	log.failedToConnect(log.begin(3), context.Canceled)
	lines := log.lines()
	if len(lines) != 3 {
		t.Fatalf("%+v", lines)
	}
	if lines[0].ID != 1 || lines[0].Error != nil || lines[1].ID != 2 || lines[1].ErrorKind == nil || *lines[1].ErrorKind != "canceled" ||
		lines[2].ID != 1 || lines[2].Kind != "close" || lines[2].Error != nil {
		t.Errorf("%+v", lines)
	}
}

func TestANameThatDoesNotResolveHasNoAddresses(t *testing.T) {
	log := newRecorded(t)
	if _, err := log.dialer(patience).DialContext(t.Context(), "tcp", "nowhere:80"); err == nil {
		t.Fatal("it resolved")
	}
	if lines := log.lines(); len(lines) != 1 || lines[0].Remote != nil || lines[0].Local != nil || lines[0].Error == nil {
		t.Errorf("%+v", lines)
	}
}

func TestAVUWithAnotherDialerIsRefused(t *testing.T) {
	log := newRecorded(t)
	state := vuState()
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err == nil {
		t.Error("a dialer that is not k6's own was taken")
	}
	state.Dialer = netext.NewDialer(net.Dialer{}, nil)
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err == nil {
		t.Error("a transport that is not k6's own was taken")
	}
	log.lines()
}

func TestADialBeginsWithItsTimeOut(t *testing.T) {
	log, timeout := newRecorded(t), time.Minute
	socketMade := 5 * time.Second
	began := time.Now().Add(-socketMade)
	for name, one := range map[string]struct {
		asked    time.Time
		deadline time.Time
		want     time.Time
	}{
		"a moment before connect(2)":         {asked: began.Add(-time.Second), deadline: began.Add(timeout), want: began},
		"never before it is asked for":       {asked: began, deadline: began.Add(timeout - time.Second), want: began},
		"never after connect(2), nor later":  {asked: began, deadline: began.Add(2 * timeout)},
		"with connect(2), without a timeout": {asked: began},
	} {
		ctx := t.Context()
		if !one.deadline.IsZero() {
			bounded, cancel := context.WithDeadline(ctx, one.deadline)
			defer cancel()
			ctx = bounded
		}
		dial := log.begin(1)
		dial.start = one.asked
		before := time.Now()
		dial.connecting(beginning(ctx, timeout), "192.0.2.1:80", nil, time.Hour)
		dial.look.Stop()
		if one.want.IsZero() {
			if dial.start.Before(before) || dial.start.After(time.Now()) {
				t.Errorf("%s: it began %v after it was asked for", name, dial.start.Sub(one.asked))
			}
		} else if !dial.start.Equal(one.want) {
			t.Errorf("%s: it began %v after it was asked for", name, dial.start.Sub(one.asked))
		}
	}
}

func TestADialThatIsGivenUpLastsItsTimeOutAtLeast(t *testing.T) {
	log := newRecorded(t)
	full := fullqueue.Address(t)
	const timeout = 20 * time.Millisecond
	for range 20 {
		if _, err := log.dialer(timeout).DialContext(t.Context(), "tcp", full); err == nil {
			t.Fatal("it connected")
		}
	}
	if err := log.journal.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(log.folder, "dials.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(content), "\n") {
		var dial struct {
			Kind       string
			DurationUS int64 `json:"duration_us"`
		}
		if text != "" && json.Unmarshal([]byte(text), &dial) == nil && dial.Kind == "dial" && dial.DurationUS < timeout.Microseconds() {
			t.Errorf("%s", text)
		}
	}
}
