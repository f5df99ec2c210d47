package dial

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"testing"
	"time"

	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/netext/httpext"
)

// answerOnce answers one request, keeps the connection, listens no more, and closes when it is asked again.
func answerOnce(listener net.Listener) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	if _, err := http.ReadRequest(reader); err != nil {
		return
	}
	_ = listener.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	_, _ = http.ReadRequest(reader)
}

// ask makes a request as k6 does, and returns what k6's tracer has of it.
func ask(t *testing.T, state *lib.State, target string) (*httpext.Trail, error) {
	t.Helper()
	tracer := new(httpext.Tracer)
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), tracer.Trace()), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := state.Transport.RoundTrip(request)
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	return tracer.Done(), err
}

// net/http sends the request again over a new connection if the server has closed the kept one.
func TestARequestAskedAgainNamesItsLastDial(t *testing.T) {
	log, listener, state := newRecorded(t), listen(t, "tcp", "127.0.0.1:0"), vuState()
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	go answerOnce(listener)
	target := "http://" + listener.Addr().String()
	first, err := ask(t, state, target)
	if err != nil {
		t.Fatal(err)
	}
	if attempt := first.ConnRemoteAddr.(*Attempt); attempt.String() != listener.Addr().String() || attempt.DialID() != 1 {
		t.Errorf("the first request: dial %d, remote %q", attempt.DialID(), attempt)
	}
	second, err := ask(t, state, target)
	if kindOf(err) != "refused" {
		t.Fatalf("the second request ended with %v", err)
	}
	if attempt := second.ConnRemoteAddr.(*Attempt); attempt.String() != "" || attempt.DialID() != 2 || attempt.Reused() {
		t.Errorf("the second request: dial %d, remote %q", attempt.DialID(), attempt)
	}
	if second.Blocked != 0 || second.Connecting != 0 || second.Sending < 0 || second.Waiting < 0 {
		t.Errorf("its timings: %+v", second)
	}
	_, _ = log.Finish()
	lines := log.lines()
	if len(lines) != 3 || lines[2].ID != 2 || lines[2].ErrorKind == nil || *lines[2].ErrorKind != "refused" {
		t.Errorf("%+v", lines)
	}
}

// answerOncePerConnection answers the first request of each connection, and aborts it a while after the second.
func answerOncePerConnection(listener net.Listener, while time.Duration) {
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
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
			if _, err := http.ReadRequest(reader); err == nil {
				time.Sleep(while)
			}
		}()
	}
}

func TestTheTimesOfARequestAskedAgainAreThoseOfItsLastConnection(t *testing.T) {
	const vain = 3 * time.Second
	log, listener, state := newRecorded(t), listen(t, "tcp", "127.0.0.1:0"), vuState()
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	go answerOncePerConnection(listener, vain)
	target := "http://" + listener.Addr().String()
	first, err := ask(t, state, target)
	if err != nil {
		t.Fatal(err)
	}
	if attempt := first.ConnRemoteAddr.(*Attempt); attempt.Reused() || attempt.Connecting() <= 0 || attempt.Connecting() > first.Blocked {
		t.Errorf("the first request: connecting took %v of %v", attempt.Connecting(), first.Blocked)
	}
	again, err := ask(t, state, target)
	if err != nil {
		t.Fatal(err)
	}
	attempt := again.ConnRemoteAddr.(*Attempt)
	if attempt.Reused() || attempt.Connecting() <= 0 || attempt.DialID() != 2 {
		t.Errorf("dial %d, reused %v, connecting took %v", attempt.DialID(), attempt.Reused(), attempt.Connecting())
	}
	whole := again.EndTime.Sub(attempt.Start)
	if untold := whole - again.Blocked - again.Duration; again.Blocked < vain || again.Sending >= vain || untold.Abs() >= vain {
		t.Errorf("of %v it was blocked for %v, and lasted %v then, sending %v", whole, again.Blocked, again.Duration, again.Sending)
	}
	_, _ = log.Finish()
	log.lines()
}

func TestARequestOverAKeptConnectionDidNotConnect(t *testing.T) {
	log, listener, state := newRecorded(t), listen(t, "tcp", "127.0.0.1:0"), vuState()
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	var last *httpext.Trail
	for range 2 {
		trail, err := ask(t, state, "http://"+listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		last = trail
	}
	if attempt := last.ConnRemoteAddr.(*Attempt); !attempt.Reused() || attempt.Connecting() != 0 || attempt.DialID() != 1 {
		t.Errorf("dial %d, reused %v, connecting took %v", attempt.DialID(), attempt.Reused(), attempt.Connecting())
	}
	_, _ = log.Finish()
	log.lines()
}

// A proxy of the environment, as Docker's client may put it there.
func TestRequestsGoToTheirTargetWhateverTheEnvironmentSays(t *testing.T) {
	log, listener, state := newRecorded(t), listen(t, "tcp", "127.0.0.1:0"), vuState()
	state.Transport.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { return nil, errors.New("a proxy was asked for") }
	if err := log.Install(state, Settings{ConnectTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	go answerOnce(listener)
	if _, err := ask(t, state, "http://"+listener.Addr().String()); err != nil {
		t.Error(err)
	}
	_, _ = log.Finish()
	log.lines()
}
