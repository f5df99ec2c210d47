package dial

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
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
func ask(t *testing.T, state *lib.State, url string) (*httpext.Trail, error) {
	t.Helper()
	tracer := new(httpext.Tracer)
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), tracer.Trace()), http.MethodGet, url, nil)
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

// net/http asks again over a new connection when the kept one turns out to be gone.
func TestARequestAskedAgainNamesItsLastDial(t *testing.T) {
	log, listener, state := newRecorded(t), listen(t, "tcp", "127.0.0.1:0"), vuState()
	if err := log.Install(state, time.Second); err != nil {
		t.Fatal(err)
	}
	go answerOnce(listener)
	url := "http://" + listener.Addr().String()
	first, err := ask(t, state, url)
	if err != nil {
		t.Fatal(err)
	}
	if attempt := first.ConnRemoteAddr.(*Attempt); !attempt.Connected() || attempt.DialID() != 1 {
		t.Errorf("the first request: dial %d, remote %q", attempt.DialID(), attempt)
	}
	second, err := ask(t, state, url)
	if kindOf(err) != "refused" {
		t.Fatalf("the second request ended with %v", err)
	}
	if attempt := second.ConnRemoteAddr.(*Attempt); attempt.Connected() || attempt.String() != "" || attempt.DialID() != 2 {
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
