package e2e

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serveStreams answers connections by HTTP/2, each by its number, from 1. It closes them with the test.
func serveStreams(t *testing.T, answer func(connection int, framer *http2.Framer)) string {
	t.Helper()
	// Its certificate alone is of use.
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for number := 1; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func(conn net.Conn, number int) {
				defer func() { _ = conn.Close() }()
				if framer := greet(conn); framer != nil {
					answer(number, framer)
				}
			}(conn, number)
		}
	}()
	return "https://" + listener.Addr().String()
}

// greet begins HTTP/2 on a connection; nil if the client does not.
func greet(conn net.Conn) *http2.Framer {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return nil
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	return framer
}

// nextStream reads until a request comes, and returns its number; 0 at the connection's end.
func nextStream(framer *http2.Framer) uint32 {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return 0
		}
		if headers, isRequest := frame.(*http2.HeadersFrame); isRequest {
			return headers.StreamID
		}
	}
}

func respond(framer *http2.Framer, stream uint32) {
	var header bytes.Buffer
	_ = hpack.NewEncoder(&header).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: header.Bytes(), EndStream: true, EndHeaders: true,
	})
}

func TestARequestThatTheServerSentBackIsRecordedAsSentAgain(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		url := serveStreams(t, func(connection int, framer *http2.Framer) {
			sent := 0
			for stream := nextStream(framer); stream != 0; stream = nextStream(framer) {
				sent++
				switch {
				case connection > 1 || sent != 2:
					respond(framer, stream)
				case refused:
					_ = framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
				default:
					_ = framer.WriteGoAway(stream-2, http2.ErrCodeNo, nil)
				}
			}
		})
		script := filepath.Join(t.TempDir(), "twice.js")
		text := `import http from 'k6/http';
			export const options = { insecureSkipTLSVerify: true };
			export default () => { http.get(__ENV.BASE_URL); http.get(__ENV.BASE_URL); };`
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := startOwn(t, script, knobs(url), "--env", "BASE_URL="+url).wait(t)
		found := r.record(t).requests
		if r.exit != 0 || len(found) != 2 {
			t.Fatalf("exit code %d, %d requests:\n%s", r.exit, len(found), &r.stderr)
		}
		first, second := found[0], found[1]
		if first.Protocol != "http2" || first.SentAgain != 0 || second.SentAgain != 1 || second.FirstDial != *first.Dial {
			t.Errorf("refused %v: %+v, %+v", refused, first, second)
		}
		// A GOAWAY costs the request another connection; after a refusal it takes the same one.
		if (*second.Dial == *first.Dial) != refused || second.AgainUS <= 0 || second.AgainUS > second.BlockedUS {
			t.Errorf("refused %v: sent again on dial %d after %d µs", refused, *second.Dial, second.AgainUS)
		}
	}
}
