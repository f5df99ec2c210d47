package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connlab/gateway/internal/client"
	"connlab/gateway/internal/config"
	"connlab/gateway/internal/schematest"
)

// A line of access.jsonl, as far as the tests ask.
type accessLine struct {
	Connection         int64
	ConnectionRequests int64   `json:"connection_requests"`
	RequestURI         string  `json:"request_uri"`
	RequestLength      int64   `json:"request_length"`
	SSLProtocol        string  `json:"ssl_protocol"`
	SSLSessionReused   string  `json:"ssl_session_reused"`
	RequestTime        float64 `json:"request_time"`
	Protocol           string  `json:"server_protocol"`
	Completion         string  `json:"request_completion"`
	Status             int
	BytesSent          int64  `json:"bytes_sent"`
	BodyBytesSent      int64  `json:"body_bytes_sent"`
	UpstreamAddr       string `json:"upstream_addr"`
	UpstreamStatus     string `json:"upstream_status"`
	ConnectTime        string `json:"upstream_connect_time"`
	HeaderTime         string `json:"upstream_header_time"`
	Sent               string `json:"upstream_bytes_sent"`
	Received           string `json:"upstream_bytes_received"`
	LocalAddr          string `json:"upstream_local_addr"`
	Upstream           string `json:"upstream_connection"`
	UpstreamRequests   string `json:"upstream_connection_requests"`
	Reused             string `json:"upstream_reused"`
}

type dialLine struct {
	Kind      string
	ID        int64
	Local     *string
	Error     *string
	ErrorKind *string `json:"error_kind"`
	Dials     int64
	Failed    int64
}

type gatewayState struct {
	Settings    map[string]any
	Upstreams   []string
	Connections struct{ Open, Idle, Opened, Reused, Closed, ClosedByPeer int64 }
	Dials       struct {
		UnderWay int64
		Failed   map[string]int64
	}
	Requests struct{ InFlight, Waiting, Served int64 }
	Clients  struct{ Open int64 }
}

// A running is a gateway at work in front of a real server, on loopback.
type running struct {
	t       *testing.T
	gateway *gateway
	raw     string
	client  *http.Client
	stop    func() error
}

var defaults = config.Config{
	MaxIdleConns: 100, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, DialTimeout: 30 * time.Second,
}

// patience is so long that only a hang takes longer, even on a busy machine.
const patience = 5 * time.Minute

// start begins a gateway before the servers at these addresses.
func start(t *testing.T, settings config.Config, upstreams ...string) *running {
	t.Helper()
	r := &running{t: t, raw: t.TempDir()}
	settings.Upstreams = upstreams
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &bytes.Buffer{}
	var err error
	r.gateway, err = open(ctx, settings, places{raw: r.raw, traffic: "127.0.0.1:0", management: "127.0.0.1:0"}, stderr)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.gateway.serve(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		if stderr.Len() > 0 {
			err = errors.Join(err, errors.New(stderr.String()))
		}
		return err
	})
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *running) url(path string) string {
	scheme := "http://"
	if r.gateway.secured {
		scheme = "https://"
	}
	return scheme + r.gateway.listeners[0].Addr().String() + path
}

// get sends a request through the gateway; a transport error is status 0.
func (r *running) get(path string) (status int, body string) {
	response, err := r.client.Get(r.url(path))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// together sends that many requests at once.
func (r *running) together(count int, path string) {
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			if status, body := r.get(path); status != http.StatusOK {
				r.t.Errorf("%s: status %d, %q", path, status, body)
			}
		})
	}
	all.Wait()
}

func (r *running) state() gatewayState {
	r.t.Helper()
	response, err := http.Get("http://" + r.gateway.listeners[1].Addr().String() + "/gateway")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var state gatewayState
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		r.t.Fatal(err)
	}
	return state
}

// eventually waits for what another goroutine is about to do.
func (r *running) eventually(what string, holds func(gatewayState) bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !holds(r.state()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s; %+v", what, r.state())
		}
	}
}

// lines ends the gateway and returns a file's lines, each valid against the schema of its name.
func lines[T any](r *running, name string) []T {
	r.t.Helper()
	if err := r.stop(); err != nil {
		r.t.Errorf("it ended with %v", err)
	}
	var found []T
	for line := range strings.Lines(r.read(name + ".jsonl")) {
		schematest.Validate(r.t, name, []byte(line))
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			r.t.Fatal(err)
		}
		found = append(found, one)
	}
	return found
}

func (r *running) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.raw, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// backend is a real server; it answers 200 with the request's path, after ?after=, and with ?crowd= only when that many
// requests wait at once.
func backend(t *testing.T) (server *httptest.Server, connections *atomic.Int64) {
	t.Helper()
	var together crowd
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if users, err := strconv.Atoi(r.URL.Query().Get("crowd")); err == nil {
			<-together.arrive(users)
		}
		if after, err := time.ParseDuration(r.URL.Query().Get("after")); err == nil {
			select {
			case <-time.After(after):
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
}

// A crowd gets its answers when it is complete.
type crowd struct {
	mutex    sync.Mutex
	arrived  int
	complete chan struct{}
}

func (c *crowd) arrive(users int) <-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.arrived == 0 {
		c.complete = make(chan struct{})
	}
	complete := c.complete
	if c.arrived++; c.arrived == users {
		close(complete)
		c.arrived = 0
	}
	return complete
}

// serve is a real server with a handler of its own.
func serve(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	server = httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, connections
}

func addressOf(server *httptest.Server) string { return server.Listener.Addr().String() }

func TestALineTellsWhichConnectionARequestWentOver(t *testing.T) {
	server, _ := backend(t)
	r := start(t, defaults, addressOf(server))
	for range 3 {
		if status, body := r.get("/a?b=1&c=2"); status != http.StatusOK || body != "/a" {
			t.Fatalf("status %d, %q", status, body)
		}
	}
	found := lines[accessLine](r, "access")
	dials := lines[dialLine](r, "dials")
	if len(found) != 3 || len(dials) != 4 {
		t.Fatalf("%d lines, %d of dials", len(found), len(dials))
	}
	for i, line := range found {
		number := int64(i + 1)
		if line.Connection != 1 || line.ConnectionRequests != number || line.Upstream != "1" ||
			line.UpstreamRequests != fmt.Sprint(number) || line.Reused != fmt.Sprint(number > 1) {
			t.Errorf("line %d: %+v", number, line)
		}
		if line.LocalAddr != *dials[1].Local || line.UpstreamAddr != addressOf(server) || line.Completion != "OK" ||
			line.RequestURI != "/a?b=1&c=2" || line.Status != 200 || line.UpstreamStatus != "200" {
			t.Errorf("line %d: %+v", number, line)
		}
	}
	if dials[2].Kind != "close" || dials[2].Error != nil || dials[3].Dials != 1 || dials[3].Failed != 0 {
		t.Errorf("dials: %+v", dials)
	}
}

// The bytes are those that the sockets saw: what a plain client sends and reads.
func TestALineCountsBytes(t *testing.T) {
	server, _ := backend(t)
	r := start(t, defaults, addressOf(server))
	conn, err := net.Dial("tcp", r.gateway.listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const request = "GET /12345 HTTP/1.1\r\nHost: x\r\n\r\n"
	reader := bufio.NewReader(conn)
	var sent []int64
	for range 2 {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		var read int64
		for body := false; !body; {
			line, err := reader.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			read += int64(len(line))
			body = line == "\r\n"
		}
		if _, err := reader.Discard(len("/12345")); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, read+int64(len("/12345")))
	}
	for i, line := range lines[accessLine](r, "access") {
		if line.RequestLength != int64(len(request)) || line.BytesSent != sent[i] || line.BodyBytesSent != 6 {
			t.Errorf("request %d: %+v, sent %d, read %d", i+1, line, len(request), sent[i])
		}
		if line.Sent == "0" || line.Received == "0" {
			t.Errorf("upstream bytes: %+v", line)
		}
	}
}

// The smaller of the two limits is the size of the pool, whichever it is: of ten connections three survive.
func TestTheSmallerLimitIsThePool(t *testing.T) {
	for name, settings := range map[string]config.Config{
		"MaxIdleConnsPerHost": {MaxIdleConns: 100, MaxIdleConnsPerHost: 3},
		"MaxIdleConns":        {MaxIdleConns: 3, MaxIdleConnsPerHost: 100},
	} {
		t.Run(name, func(t *testing.T) {
			server, opened := backend(t)
			r := start(t, settings, addressOf(server))
			const users, rounds, pool = 10, 3, 3
			for round := range int64(rounds) {
				r.together(users, "/x?crowd=10")
				r.eventually("all but three closed", func(s gatewayState) bool {
					return s.Connections.Open == pool && s.Connections.Idle == pool && s.Requests.InFlight == 0
				})
				if want := users + round*(users-pool); opened.Load() != want {
					t.Errorf("round %d: %d connections at the backend, want %d", round, opened.Load(), want)
				}
			}
			c := r.state().Connections
			if c.Opened != opened.Load() || c.Closed != c.Opened-pool || c.Reused != (rounds-1)*pool || c.ClosedByPeer != 0 {
				t.Errorf("counters: %+v", c)
			}
		})
	}
}

func TestAPoolThatIsLargeEnoughOpensNoMore(t *testing.T) {
	server, opened := backend(t)
	r := start(t, config.Config{MaxIdleConns: 10, MaxIdleConnsPerHost: 10}, addressOf(server))
	for range 3 {
		r.together(10, "/x?crowd=10")
		r.eventually("all idle", func(s gatewayState) bool { return s.Connections.Idle == 10 })
	}
	if opened.Load() != 10 {
		t.Errorf("%d connections, want 10", opened.Load())
	}
}

func TestWithoutKeepAliveEachRequestHasItsConnection(t *testing.T) {
	server, opened := backend(t)
	settings := defaults
	settings.DisableKeepAlives = true
	r := start(t, settings, addressOf(server))
	for range 5 {
		r.together(1, "/x")
	}
	r.eventually("all closed", func(s gatewayState) bool { return s.Connections.Closed == 5 && s.Connections.Idle == 0 })
	if opened.Load() != 5 {
		t.Errorf("%d connections, want 5", opened.Load())
	}
}

func TestIdleConnectionsAreClosedWhenTheirTimeIsUp(t *testing.T) {
	server, _ := backend(t)
	settings := defaults
	settings.IdleConnTimeout = 50 * time.Millisecond
	r := start(t, settings, addressOf(server))
	r.together(1, "/x")
	r.eventually("closed", func(s gatewayState) bool { return s.Connections.Closed == 1 && s.Connections.ClosedByPeer == 0 })
}

func TestMaxConnsPerHostMakesRequestsWait(t *testing.T) {
	twoWait := make(chan struct{})
	server, opened := serve(t, func(http.ResponseWriter, *http.Request) {
		<-twoWait
		time.Sleep(300 * time.Millisecond)
	})
	settings := defaults
	settings.MaxConnsPerHost = 1
	r := start(t, settings, addressOf(server))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.together(3, "/x")
	}()
	r.eventually("two wait", func(s gatewayState) bool { return s.Requests.Waiting == 2 && s.Requests.InFlight == 3 })
	close(twoWait)
	<-done
	if opened.Load() != 1 {
		t.Errorf("%d connections, want 1", opened.Load())
	}
	longest := ""
	for _, line := range lines[accessLine](r, "access") {
		longest = max(longest, line.ConnectTime)
	}
	if longest < "0.600" {
		t.Errorf("the longest wait for a connection is %s s, behind two requests of 0.3 s each", longest)
	}
}

func TestSeveralBackendsTakeTurns(t *testing.T) {
	first, one := backend(t)
	second, two := backend(t)
	r := start(t, defaults, addressOf(first), addressOf(second))
	for range 4 {
		r.together(1, "/x")
	}
	if one.Load() != 1 || two.Load() != 1 {
		t.Errorf("connections: %d and %d, want one each", one.Load(), two.Load())
	}
	servers := map[string]int{}
	for _, line := range lines[accessLine](r, "access") {
		servers[line.UpstreamAddr]++
	}
	if !maps.Equal(servers, map[string]int{addressOf(first): 2, addressOf(second): 2}) {
		t.Errorf("requests: %v", servers)
	}
}

func TestARefusedConnectionIs502(t *testing.T) {
	_, address := bound(t)
	r := start(t, defaults, address)
	if status, body := r.get("/x"); status != http.StatusBadGateway || body != "" {
		t.Errorf("status %d, %q", status, body)
	}
	if failed := r.state().Dials.Failed; failed["refused"] != 1 || failed["timeout"] != 0 {
		t.Errorf("counters: %v", failed)
	}
	line, dials := lines[accessLine](r, "access")[0], lines[dialLine](r, "dials")
	if line.UpstreamStatus != "502" || line.ConnectTime != "-" || line.Upstream != "1" || line.Reused != "-" ||
		line.LocalAddr != "-" || line.Completion != "OK" {
		t.Errorf("%+v", line)
	}
	if dial := dials[1]; dial.ErrorKind == nil || *dial.ErrorKind != "refused" || dial.Local != nil {
		t.Errorf("%+v", dial)
	}
	if text := r.read("error.log"); !strings.Contains(text, ": *1 connect() failed (111: connection refused) while connecting to upstream") {
		t.Errorf("error.log: %q", text)
	}
}

// bound returns a socket that has a port and does not listen: nobody else gets the port, and the kernel refuses it.
func bound(t *testing.T) (fd int, address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

// A listener that accepts nobody, with a backlog of 0: the kernel completes one handshake, and drops the next one's SYN.
func TestAConnectTimeOutIs504AndItsPortIsKnown(t *testing.T) {
	fd, address := bound(t)
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	first, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	settings := defaults
	settings.DialTimeout = 200 * time.Millisecond
	r := start(t, settings, address)
	if status, _ := r.get("/x"); status != http.StatusGatewayTimeout {
		t.Errorf("status %d", status)
	}
	line, dials := lines[accessLine](r, "access")[0], lines[dialLine](r, "dials")
	if line.UpstreamStatus != "504" || line.ConnectTime != "-" {
		t.Errorf("%+v", line)
	}
	if dial := dials[1]; dial.ErrorKind == nil || *dial.ErrorKind != "timeout" || dial.Local == nil {
		t.Errorf("%+v", dial)
	}
	if text := r.read("error.log"); !strings.Contains(text, "upstream timed out (110: connection timed out) while connecting") {
		t.Errorf("error.log: %q", text)
	}
}

func TestALateHeaderIs504(t *testing.T) {
	server, _ := backend(t)
	settings := defaults
	settings.ResponseHeaderTimeout = 100 * time.Millisecond
	r := start(t, settings, addressOf(server))
	if status, _ := r.get("/x?after=10m"); status != http.StatusGatewayTimeout {
		t.Errorf("status %d", status)
	}
	line := lines[accessLine](r, "access")[0]
	if line.UpstreamStatus != "504" || line.ConnectTime == "-" || line.HeaderTime != "-" {
		t.Errorf("%+v", line)
	}
	if text := r.read("error.log"); !strings.Contains(text, "while reading response header from upstream") {
		t.Errorf("error.log: %q", text)
	}
}

// The backend closes a kept connection in answer to its second request: Go sends it again over another one.
func TestAKeptConnectionThatTurnsOutClosedIsATryOfItsOwn(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				reader := bufio.NewReader(conn)
				if _, err := http.ReadRequest(reader); err != nil {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				_, _ = http.ReadRequest(reader)
			}()
		}
	}()
	r := start(t, defaults, listener.Addr().String())
	for range 2 {
		r.together(1, "/x")
	}
	found := lines[accessLine](r, "access")
	if line := found[1]; line.Status != 200 || line.UpstreamStatus != "502, 200" || line.Upstream != "1, 2" ||
		line.Reused != "true, false" || line.UpstreamRequests != "2, 1" {
		t.Errorf("%+v", line)
	}
}

func TestAClientThatGoesIs499(t *testing.T) {
	server, _ := backend(t)
	r := start(t, defaults, addressOf(server))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url("/x?after=10m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		r.eventually("under way", func(s gatewayState) bool { return s.Requests.InFlight == 1 && s.Connections.Open == 1 })
	}()
	if _, err := r.client.Do(request); err == nil {
		t.Error("it was answered")
	}
	r.eventually("over", func(s gatewayState) bool { return s.Requests.InFlight == 0 && s.Requests.Served == 1 })
	if line := lines[accessLine](r, "access")[0]; line.Status != 499 || line.UpstreamStatus != "-" || line.Completion != "" {
		t.Errorf("%+v", line)
	}
	if text := r.read("error.log"); text != "" {
		t.Errorf("error.log: %q", text)
	}
}

func TestAnAnswerThatBreaksOffIsNotComplete(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	r := start(t, defaults, addressOf(server))
	if status, _ := r.get("/x"); status != 0 {
		t.Errorf("status %d", status)
	}
	line := lines[accessLine](r, "access")[0]
	if line.Status != 200 || line.Completion != "" || line.BodyBytesSent >= 1_000_000 {
		t.Errorf("%+v", line)
	}
}

func TestTheSettingsAreReadBack(t *testing.T) {
	server, _ := backend(t)
	settings := config.Config{
		MaxIdleConns: 7, MaxIdleConnsPerHost: 6, MaxConnsPerHost: 5, IdleConnTimeout: 4 * time.Second,
		ResponseHeaderTimeout: 3 * time.Second, DialTimeout: 2 * time.Second, ServerIdleTimeout: time.Second,
		DisableKeepAlives: true, ServerReadHeaderTimeout: 8 * time.Second, TLSHandshakeTimeout: 9 * time.Second,
		TLSClientSessionCache: 10, HTTP2: true, HTTP2MaxConcurrentStreams: 11, UpstreamHTTP2: true,
	}
	r := start(t, settings, addressOf(server))
	state := r.state()
	want := map[string]any{
		"maxIdleConns": 7.0, "maxIdleConnsPerHost": 6.0, "maxConnsPerHost": 5.0, "idleConnTimeoutMs": 4000.0,
		"responseHeaderTimeoutMs": 3000.0, "dialTimeoutMs": 2000.0, "serverIdleTimeoutMs": 1000.0, "disableKeepAlives": true,
		"serverReadHeaderTimeoutMs": 8000.0, "tls": false, "tlsHandshakeTimeoutMs": 9000.0, "tlsClientSessionCache": 10.0,
		"http2": true, "http2MaxConcurrentStreams": 11.0, "upstreamHttp2": true,
	}
	if !maps.Equal(state.Settings, want) {
		t.Errorf("%v, want %v", state.Settings, want)
	}
	if len(state.Upstreams) != 1 || state.Upstreams[0] != addressOf(server) {
		t.Errorf("upstreams: %v", state.Upstreams)
	}
	response, err := http.Get("http://" + r.gateway.listeners[1].Addr().String() + "/healthz")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("healthz: %v, %v", response, err)
	}
}

// Go uses MPTCP if the kernel supports it and net.mptcp.enabled is set.
func TestItListensByTCP(t *testing.T) {
	server, _ := backend(t)
	r := start(t, defaults, addressOf(server))
	for i, listener := range r.gateway.listeners {
		if counted, ok := listener.(client.Listener); ok {
			listener = counted.Listener
		}
		socket, err := listener.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var protocol int
		var failed error
		if err := socket.Control(func(fd uintptr) {
			protocol, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PROTOCOL)
		}); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if protocol != syscall.IPPROTO_TCP {
			t.Errorf("listener %d has protocol %d, not TCP", i+1, protocol)
		}
	}
}

func TestARequestUnderWayIsFinishedAtTheEnd(t *testing.T) {
	mayAnswer := make(chan struct{})
	server, _ := serve(t, func(http.ResponseWriter, *http.Request) { <-mayAnswer })
	r := start(t, defaults, addressOf(server))
	r.gateway.grace = patience
	status, stopped := make(chan int, 1), make(chan error, 1)
	go func() {
		code, _ := r.get("/x")
		status <- code
	}()
	r.eventually("under way", func(s gatewayState) bool { return s.Requests.InFlight == 1 && s.Connections.Open == 1 })
	go func() { stopped <- r.stop() }()
	for listens := true; listens; {
		conn, err := net.Dial("tcp", r.gateway.listeners[0].Addr().String())
		if listens = err == nil; listens {
			_ = conn.Close()
		}
	}
	close(mayAnswer)
	if err := <-stopped; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if code := <-status; code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	dials := lines[dialLine](r, "dials")
	if last := dials[len(dials)-1]; last.Kind != "end" || last.Dials != 1 || len(lines[accessLine](r, "access")) != 1 {
		t.Errorf("the record is not complete: %+v", dials)
	}
}

func TestARequestThatIsCutShortAtTheEndHasItsLine(t *testing.T) {
	server, _ := backend(t)
	r := start(t, defaults, addressOf(server))
	r.gateway.grace = 50 * time.Millisecond
	const users = 20
	var all sync.WaitGroup
	for range users {
		all.Go(func() { _, _ = r.get("/x?after=10m") })
	}
	r.eventually("under way", func(s gatewayState) bool { return s.Connections.Open == users })
	found := lines[accessLine](r, "access")
	all.Wait()
	if len(found) != users {
		t.Errorf("%d lines of %d requests", len(found), users)
	}
	for _, line := range found {
		if line.Status != 499 || line.Completion != "" || line.Upstream == "-" {
			t.Errorf("%+v", line)
		}
	}
}

// An upgraded connection no longer belongs to net/http, so it does not end with the traffic.
func TestARequestThatDoesNotEndIsALostLine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.Copy(io.Discard, conn)
	}))
	t.Cleanup(server.Close)
	r := start(t, defaults, addressOf(server))
	conn, err := net.Dial("tcp", r.gateway.listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	want := "its record is not complete: requests that did not end, and have no line: 1"
	if err := r.stop(); err == nil || err.Error() != want {
		t.Errorf("it ended with %v, want %s", err, want)
	}
}

func TestABadStartEndsWithALineForEachFault(t *testing.T) {
	environment := map[string]string{
		"CONNLAB_UPSTREAMS": "127.0.0.1:9", "CONNLAB_MAX_IDLE_CONNS_PER_HOST": "2",
		"CONNLAB_MAX_CONNS_PER_HOST": "0", "CONNLAB_RESPONSE_HEADER_TIMEOUT": "0ms",
		"CONNLAB_DIAL_TIMEOUT": "30000ms", "CONNLAB_SERVER_IDLE_TIMEOUT": "0ms", "CONNLAB_DISABLE_KEEP_ALIVES": "false",
		"CONNLAB_SERVER_READ_HEADER_TIMEOUT": "0ms", "CONNLAB_TLS": "false", "CONNLAB_TLS_MIN": "TLSv1.2",
		"CONNLAB_TLS_MAX": "TLSv1.3", "CONNLAB_TLS_SESSION_TICKETS": "true", "CONNLAB_TLS_HANDSHAKE_TIMEOUT": "10000ms",
		"CONNLAB_TLS_CLIENT_SESSION_CACHE": "0", "CONNLAB_HTTP2": "false",
		"CONNLAB_HTTP2_MAX_CONCURRENT_STREAMS": "250", "CONNLAB_UPSTREAM_HTTP2": "false",
	}
	lookup := func(name string) (string, bool) {
		value, found := environment[name]
		return value, found
	}
	said := func(arguments ...string) (int, string) {
		var stderr bytes.Buffer
		code := run(t.Context(), arguments, lookup, &stderr)
		return code, stderr.String()
	}
	want := "gateway: CONNLAB_MAX_IDLE_CONNS is missing\n" + "gateway: CONNLAB_IDLE_CONN_TIMEOUT is missing\n"
	if code, text := said(); code != 2 || text != want {
		t.Errorf("exit code %d, %q, want %q", code, text, want)
	}
	environment["CONNLAB_MAX_IDLE_CONNS"], environment["CONNLAB_IDLE_CONN_TIMEOUT"] = "100", "90000ms"
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if code, text := said("-raw", nowhere); code != 2 || !strings.HasPrefix(text, "gateway: cannot write its record: ") {
		t.Errorf("exit code %d, %q", code, text)
	}
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	code, text := said("-raw", t.TempDir(), "-listen", taken.Addr().String())
	if code != 2 || !strings.HasPrefix(text, "gateway: cannot listen: ") || strings.Count(text, "\n") != 1 {
		t.Errorf("exit code %d, %q", code, text)
	}
	if code, text := said("serve"); code != 2 || text != "gateway: unknown argument \"serve\": there are only flags\n" {
		t.Errorf("exit code %d, %q", code, text)
	}
}
