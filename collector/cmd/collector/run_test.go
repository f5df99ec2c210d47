package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/eventually"
	"connlab/collector/internal/netns"
	"connlab/collector/internal/schematest"
)

// peer is the only other host of these tests; a namespace has one link.
var peer = sync.OnceValues(func() (*netns.Peer, error) { return netns.NewPeer() })

// A sample is any line of samples.jsonl.
type sample struct {
	Kind     string
	Scraped  *int64 `json:"metrics_connections"`
	Counters map[string]int64
	Listen   []listener
	Groups   []group
	Reason   string
}

type listener struct {
	Address             string
	Port                int
	Depth, Limit, Drops int
}

type group struct {
	State, Side, Local, Peer string
	Port, Count              int
}

// Seven clients meet a server that accepts nobody, with a backlog of 2. Its queue takes three of them; each SYN of the
// others is dropped. One gives up after 300 ms, and its kernel sends a second SYN only after a second: one each, and
// more only on a machine that is too busy to give up in time. What the client saw, what the kernel counted, what its
// socket reports and which packets passed must all agree.
func TestAProvokedOverflowIsRecordedExactly(t *testing.T) {
	const backlog, served, turnedAway = 2, 3, 4
	other := otherHost(t)
	listenWithoutAccepting(t, backlog)
	serveManagement(t)

	c := startCollector(t, "CONNLAB_CAPTURE=headers", "CONNLAB_READY_URL=http://127.0.0.1:8081/ready",
		"CONNLAB_SCRAPE=tomcat=http://127.0.0.1:8081/metrics")
	c.waitHealthy(t)
	conns, errs := dialOneByOne(other, served, eventually.Patience)
	began := time.Now()
	more, refused := dialOneByOne(other, turnedAway, 300*time.Millisecond)
	synsMax := turnedAway + int(time.Since(began)/time.Second)
	if len(conns) != served || len(more) != 0 || len(errs) != 0 || len(refused) != turnedAway {
		t.Errorf("%d and %d connections, want %d and none: %v, %v", len(conns), len(more), served, errs, refused)
	}
	// Two more lines of each kind that comes once a second, so that one of them begins from here on.
	for file, kind := range map[string]string{"samples.jsonl": `"kind":"sockets"`, "tomcat.jsonl": `"body":{"threads":7}`} {
		path := filepath.Join(c.raw, file)
		eventually.Has(t, path, kind, eventually.Count(path, kind)+2)
	}
	c.stop(t)
	for _, conn := range conns {
		_ = conn.Close()
	}

	samples := c.samples(t, "signal")
	first, last := samples[0].Counters, map[string]int64{}
	var queue listener
	var established []group
	for _, s := range samples {
		for name, value := range s.Counters {
			last[name] = value
		}
		for _, l := range s.Listen {
			if l.Port != 8080 {
				t.Errorf("the lab's own listener was sampled: %+v", l)
			}
			l.Depth, l.Drops = max(l.Depth, queue.Depth), max(l.Drops, queue.Drops)
			queue = l
		}
		if s.Kind == "sockets" {
			established = s.Groups
		}
	}
	syns := int(last["TcpExt.ListenOverflows"] - first["TcpExt.ListenOverflows"])
	if drops := int(last["TcpExt.ListenDrops"] - first["TcpExt.ListenDrops"]); syns < turnedAway || syns > synsMax || drops != syns {
		t.Errorf("ListenOverflows grew by %d, want %d to %d, and ListenDrops by %d", syns, turnedAway, synsMax, drops)
	}
	if want := (listener{netns.Address, 8080, served, backlog, syns}); queue != want {
		t.Errorf("the listener was sampled as %+v, want %+v", queue, want)
	}
	want := group{State: "ESTABLISHED", Side: "server", Local: netns.Address, Peer: netns.PeerAddress, Port: 8080, Count: served}
	if len(established) != 1 || established[0] != want {
		t.Errorf("the last sockets were %+v, want %+v", established, want)
	}
	// Three packets of each handshake, and each SYN that was dropped.
	report := c.captureReport(t)
	if want := int64(3*served + syns); report.Reason != nil || report.Captured == nil || *report.Captured != want {
		t.Errorf("capture.json: %+v, want %d packets", report, want)
	}
	if text := c.read(t, "tomcat.jsonl"); !strings.Contains(text, `"status":200,"body":{"threads":7}}`) {
		t.Errorf("tomcat.jsonl: %q", text)
	}
}

func TestTheSamplesGoOnWithoutTheCapture(t *testing.T) {
	otherHost(t)
	c := startCollector(t, "CONNLAB_CAPTURE=headers", "CONNLAB_INTERFACE=eth7")
	eventually.Written(t, filepath.Join(c.raw, "capture.json"), 1)
	c.waitUnhealthy(t, "the capture is not on")
	c.stop(t)
	if report := c.captureReport(t); report.Reason == nil || !strings.Contains(*report.Reason, "eth7") {
		t.Errorf("capture.json: %+v", report)
	}
	if !strings.HasPrefix(c.messages.String(), "collector: capture: tcpdump ended by itself (exit status 1)") {
		t.Errorf("it said %q", c.messages.String())
	}
	c.samples(t, "signal")
}

func TestARoleThatNeverComesUpHoldsNothingUp(t *testing.T) {
	netns.Require(t)
	c := startCollector(t, "CONNLAB_CAPTURE=off", "CONNLAB_READY_URL=http://127.0.0.1:8081/ready")
	c.waitUnhealthy(t, "the role is not ready")
	c.stop(t)
	c.samples(t, "signal")
}

func TestItEndsItselfIfNobodyStopsIt(t *testing.T) {
	netns.Require(t)
	c := startCollector(t, "CONNLAB_CAPTURE=off", "CONNLAB_DEADLINE_S=1")
	if err := c.wait(); err == nil {
		t.Error("it ended as if all were well")
	}
	if want := "collector: nobody stopped it within 1s\n"; c.messages.String() != want {
		t.Errorf("it said %q, want %q", c.messages, want)
	}
	c.samples(t, "error: nobody stopped it within 1s")
}

// A scrape over the network shows in the namespace's own counters, and nowhere else. The samples say how many of the
// accepted connections were scrapes.
func TestScrapesAreKnownFromTheRolesConnections(t *testing.T) {
	other := otherHost(t)
	listenWithoutAccepting(t, 2)
	c := startCollector(t, "CONNLAB_CAPTURE=off", "CONNLAB_METRICS=0.0.0.0:9645", "CONNLAB_METRICS_LABELS=run=r1 role=backend")
	c.waitHealthy(t)
	conns, errs := dialOneByOne(other, 1, eventually.Patience)
	if len(conns) != 1 {
		t.Fatal(errs)
	}
	// When the second tick is in the file, the metrics have the first one.
	path := filepath.Join(c.raw, "samples.jsonl")
	eventually.Has(t, path, `"depth":1,`, 2)
	const scrapes = 3
	var text string
	for i := range scrapes {
		// The last client asks the server to close.
		text = scrapeFrom(t, other, i == scrapes-1)
	}
	// A scrape from within the namespace counts as opened and as accepted, like the lab's own management traffic.
	response, err := http.Get("http://127.0.0.1:9645/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for _, want := range []string{
		`connlab_accept_queue_depth{instance="backend-1",run="r1",role="backend",address="` + netns.Address + `",port="8080"} 1.0`,
		`connlab_sockets{instance="backend-1",run="r1",role="backend",side="server",state="TIME_WAIT"} 0.0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	eventually.Has(t, path, `"kind":"time_wait"`, eventually.Count(path, `"kind":"time_wait"`)+1)
	c.stop(t)
	for _, conn := range conns {
		_ = conn.Close()
	}

	samples := c.samples(t, "signal")
	first, last, scraped := samples[0].Counters, map[string]int64{}, int64(-1)
	for _, s := range samples {
		for name, value := range s.Counters {
			last[name] = value
		}
		if s.Scraped != nil {
			scraped = *s.Scraped
		}
		for _, l := range s.Listen {
			if l.Port != 8080 {
				t.Errorf("the collector's own listener was sampled: %+v", l)
			}
		}
		for _, g := range s.Groups {
			if g.Port != 8080 {
				t.Errorf("a scrape was sampled: %+v", g)
			}
		}
	}
	if *samples[0].Scraped != 0 || scraped != scrapes {
		t.Errorf("%d scrapes from outside, then %d, want 0 and %d", *samples[0].Scraped, scraped, scrapes)
	}
	outside := last["Tcp.PassiveOpens"] - first["Tcp.PassiveOpens"] - (last["Tcp.ActiveOpens"] - first["Tcp.ActiveOpens"])
	if outside-scraped != int64(len(conns)) {
		t.Errorf("%d connections from outside, %d of them scrapes, want %d others", outside, scraped, len(conns))
	}
	if last["sockstat.TCP.tw"] != 0 {
		t.Errorf("scrapes left %d sockets in TIME_WAIT", last["sockstat.TCP.tw"])
	}
}

func TestWithoutMetricsNothingListens(t *testing.T) {
	netns.Require(t)
	c := startCollector(t, "CONNLAB_CAPTURE=off")
	c.waitHealthy(t)
	code, stdout, _ := result(t, nil, "inspect")
	if code != 0 || !strings.Contains(stdout, `"listeners":[]`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	c.stop(t)
	for _, s := range c.samples(t, "signal") {
		if s.Scraped != nil {
			t.Errorf("scrapes are counted: %+v", s)
		}
	}
}

func TestAMetricsPortThatIsTakenEndsItBeforeItRecords(t *testing.T) {
	netns.Require(t)
	taken, err := net.Listen("tcp4", "127.0.0.1:9645")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := startCollector(t, "CONNLAB_CAPTURE=off", "CONNLAB_METRICS=0.0.0.0:9645")
	if err := c.wait(); err == nil {
		t.Error("it ended as if all were well")
	}
	if want := "collector: metrics: listen tcp 0.0.0.0:9645: bind: address already in use\n"; c.messages.String() != want {
		t.Errorf("it said %q, want %q", c.messages, want)
	}
	if files, err := os.ReadDir(c.raw); err != nil || len(files) > 0 {
		t.Errorf("it left %v, %v", files, err)
	}
}

// scrapeFrom asks for the metrics from the other host, on a connection of its own.
func scrapeFrom(t *testing.T, other *netns.Peer, serverCloses bool) (text string) {
	t.Helper()
	var conn net.Conn
	var err error
	// A socket belongs to the namespace of the thread that makes it.
	other.Do(func() { conn, err = net.Dial("tcp4", net.JoinHostPort(netns.Address, "9645")) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	request, err := http.NewRequest(http.MethodGet, "http://"+netns.Address+":9645/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = serverCloses
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d: %v", response.StatusCode, err)
	}
	return string(body)
}

func TestWhatHoldsANamespaceEndsItselfToo(t *testing.T) {
	code, _, stderr := result(t, nil, "hold", "--for", "1ms")
	if want := "collector: nobody stopped it within 1ms\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d, %q, want %q", code, stderr, want)
	}
}

func TestAPartThatFailsEndsAllAndIsTheReason(t *testing.T) {
	netns.Require(t)
	c := startCollector(t, "CONNLAB_CAPTURE=off", "CONNLAB_READY_URL=http://127.0.0.1:8081/ready",
		"CONNLAB_SCRAPE=tomcat=http://127.0.0.1:8081/metrics")
	// The collector must not overwrite an earlier recording of a scrape.
	taken := filepath.Join(c.raw, "tomcat.jsonl")
	if err := os.WriteFile(taken, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	serveManagement(t)
	if err := c.wait(); err == nil {
		t.Error("it ended as if all were well")
	}
	if want := "collector: open " + taken + ": file exists\n"; c.messages.String() != want {
		t.Errorf("it said %q, want %q", c.messages, want)
	}
	if samples := c.samples(t, "error: open "+taken+": file exists"); len(samples) < 2 {
		t.Errorf("%d samples", len(samples))
	}
}

// A running is a collector at work.
type running struct {
	raw, state string
	messages   *bytes.Buffer
	signal     func(os.Signal) error
	wait       func() error
}

// startCollector starts "collector run" in this namespace at 50 Hz.
func startCollector(t *testing.T, settings ...string) *running {
	t.Helper()
	c := &running{raw: t.TempDir(), messages: &bytes.Buffer{}}
	c.state = filepath.Join(t.TempDir(), "state.json")
	command := collector(append(settings, "CONNLAB_ROLE=backend-1", "CONNLAB_RATE_HZ=50", "CONNLAB_CAPTURE_MAX_MB=10"),
		"run", "--raw", c.raw, "--state", c.state)
	command.Stderr = c.messages
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	c.signal, c.wait = command.Process.Signal, command.Wait
	return c
}

func (c *running) waitHealthy(t *testing.T) {
	t.Helper()
	if code, _, stderr := result(t, nil, "healthy", "--state", c.state, "--within", "5m"); code != 0 {
		t.Fatal(stderr)
	}
}

// waitUnhealthy returns when the health check says this, and nothing else is missing.
func (c *running) waitUnhealthy(t *testing.T, why string) {
	t.Helper()
	eventually.Holds(t, why, func() bool {
		code, _, stderr := result(t, nil, "healthy", "--state", c.state)
		return code == 1 && stderr == "collector: "+why+"\n"
	})
}

// stop asks the collector to end, and fails the test if it does not end in order.
func (c *running) stop(t *testing.T) {
	t.Helper()
	if err := c.signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(); err != nil {
		t.Errorf("%v: %s", err, c.messages)
	}
}

// samples returns the ticks and what follows them, of a record that ended for this reason.
func (c *running) samples(t *testing.T, reason string) []sample {
	t.Helper()
	var list []sample
	for line := range strings.Lines(c.read(t, "samples.jsonl")) {
		schematest.Validate(t, "samples", []byte(line))
		var s sample
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if last := list[len(list)-1]; last.Kind != "end" || last.Reason != reason {
		t.Errorf("the last line is %+v", last)
	}
	return list[1:]
}

type captureReport struct {
	Reason   *string
	Captured *int64 `json:"packets_captured"`
}

func (c *running) captureReport(t *testing.T) captureReport {
	t.Helper()
	text := c.read(t, "capture.json")
	schematest.Validate(t, "capture", []byte(text))
	var report captureReport
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func (c *running) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.raw, name))
	if err != nil {
		t.Fatalf("%v; the collector said %q", err, c.messages.String())
	}
	return string(text)
}

func otherHost(t *testing.T) *netns.Peer {
	t.Helper()
	netns.Require(t)
	other, err := peer()
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// listenWithoutAccepting listens on port 8080 of the link; Go's own listeners have somaxconn as their backlog.
func listenWithoutAccepting(t *testing.T, backlog int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	address := unix.SockaddrInet4{Port: 8080, Addr: [4]byte(net.ParseIP(netns.Address).To4())}
	if err := errors.Join(unix.Bind(fd, &address), unix.Listen(fd, backlog)); err != nil {
		t.Fatal(err)
	}
}

// serveManagement answers on a role's management port.
func serveManagement(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:8081")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"threads":7}`)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// dialOneByOne connects count times from the other host, and gives each up after a timeout.
func dialOneByOne(other *netns.Peer, count int, timeout time.Duration) (conns []net.Conn, errs []error) {
	for range count {
		// A socket belongs to the namespace of the thread that makes it, and the dialler makes it on this one.
		other.Do(func() {
			conn, err := net.DialTimeout("tcp4", net.JoinHostPort(netns.Address, "8080"), timeout)
			if err != nil {
				errs = append(errs, err)
			} else {
				conns = append(conns, conn)
			}
		})
	}
	return conns, errs
}
