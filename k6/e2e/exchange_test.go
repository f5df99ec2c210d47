package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// echo is a WebSocket server that sends each message back. Its paths end a session otherwise: /cut without a word, /reset
// by a RST, /full refuses it.
func echo(t *testing.T, secured bool) string {
	t.Helper()
	upgrader := websocket.Upgrader{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/full" {
			http.Error(w, "no room", http.StatusServiceUnavailable)
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil || r.URL.Path == "/cut" {
				return
			}
			if r.URL.Path == "/reset" {
				raw := conn.NetConn()
				if secured, isTLS := raw.(*tls.Conn); isTLS {
					raw = secured.NetConn()
				}
				_ = raw.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert
				_ = raw.Close()
				return
			}
			_ = conn.WriteMessage(kind, message)
		}
	})
	server := httptest.NewUnstartedServer(handler)
	if secured {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// recordOf is what a script of a user's own left.
func recordOf(t *testing.T, text string, args ...string) record {
	t.Helper()
	script := filepath.Join(t.TempDir(), "own.js")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startOwn(t, script, knobs("http://127.0.0.1:1"), args...).wait(t)
	all := r.record(t)
	if !all.ended {
		t.Fatalf("it did not end in order: exit code %d, %s", r.exit, &r.stderr)
	}
	return all
}

// by is the one request with a name.
func (r record) by(t *testing.T, name string) requestLine {
	t.Helper()
	var found []requestLine
	for _, request := range r.requests {
		if request.Name == name {
			found = append(found, request)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d requests are named %s: %+v", len(found), name, r.requests)
	}
	return found[0]
}

const blocking = `
import ws from 'k6/ws';
import { sleep } from 'k6';
export const options = { insecureSkipTLSVerify: true };
export default () => {
  const talk = (name, url) => ws.connect(url, { tags: { name } }, (socket) => {
    socket.on('open', () => { socket.send('1'); socket.send('2'); });
    let left = 2;
    socket.on('message', () => { if (--left === 0) { sleep(0.2); socket.close(); } });
  });
  talk('echo', '%s/'); talk('cut', '%s/cut'); talk('reset', '%s/reset'); talk('full', '%s/full'); talk('refused', 'ws://%r/');
};`

const concurrent = `
import { WebSocket, Blob } from 'k6/websockets';
export const options = { insecureSkipTLSVerify: true };
export default () => {
  const talk = (name, url) => {
    const socket = new WebSocket(url, null, { tags: { name } });
    let left = 2;
    socket.onopen = () => { socket.send(new Blob(['1'])); socket.send('2'); };
    socket.onmessage = () => { if (--left === 0) setTimeout(() => socket.close(), 200); };
  };
  talk('echo', '%s/'); talk('cut', '%s/cut'); talk('reset', '%s/reset'); talk('full', '%s/full'); talk('refused', 'ws://%r/');
};`

func TestASessionOfWebSocketIsARequestWithItsConnection(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"k6/ws": blocking, "k6/websockets": concurrent} {
		for _, secured := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url := echo(t, secured)
				record := recordOf(t, strings.NewReplacer("%s", url, "%r", freeAddress(t)).Replace(script))
				whole := record.by(t, "echo")
				if whole.Status != 101 || whole.ErrorCode != 0 || whole.MessagesSent < 2 || whole.MessagesReceived != 2 ||
					whole.Protocol != "websocket" || whole.URL != url+"/" || whole.Scenario != "default" {
					t.Errorf("%+v", whole)
				}
				if whole.DurationUS > 1_000_000 || whole.EndUS-whole.TimeUS < 200_000 || whole.ConnectingUS == 0 ||
					(whole.TLSUS > 0) != secured {
					t.Errorf("how long it took: %+v", whole)
				}
				if cut := record.by(t, "cut"); cut.Status != 101 || cut.ErrorCode < 1000 || cut.Error == nil {
					t.Errorf("%+v", cut)
				}
				if reset := record.by(t, "reset"); reset.Status != 101 || reset.ErrorCode < 1000 || reset.Error == nil {
					t.Errorf("%+v", reset)
				}
				if full := record.by(t, "full"); full.Status != 503 || full.ErrorCode != 1503 || full.Dial == nil {
					t.Errorf("%+v", full)
				}
				refused := record.by(t, "refused")
				if refused.Status != 0 || refused.ErrorCode != 1212 || refused.Remote != nil || refused.Dial == nil {
					t.Errorf("%+v", refused)
				}
				of := map[int64]dialLine{}
				for _, dial := range record.dials {
					of[dial.ID] = dial
				}
				if kind := of[*refused.Dial].ErrorKind; kind == nil || *kind != "refused" {
					t.Errorf("the dial of the refused one: %+v", of[*refused.Dial])
				}
				if remote := of[*whole.Dial].Remote; remote == nil || *remote != *whole.Remote || !strings.HasSuffix(url, *remote) {
					t.Errorf("its dial: %+v", of[*whole.Dial])
				}
				if live := record.live[len(record.live)-1]; live.Requests != 5 || live.Failed != 4 {
					t.Errorf("%+v", live)
				}
			})
		}
	}
}

func TestASessionThatK6CutsShortEndsWithIt(t *testing.T) {
	t.Parallel()
	record := recordOf(t, `
import { WebSocket } from 'k6/websockets';
export const options = { scenarios: { held: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
export default () => { new WebSocket('`+echo(t, false)+`/'); };`)
	if len(record.requests) != 2 {
		t.Fatalf("%+v", record.requests)
	}
	for _, request := range record.requests {
		if request.Status != 101 || request.ErrorCode != 0 || request.EndUS-request.TimeUS < 500_000 {
			t.Errorf("%+v", request)
		}
	}
}

const healthProto = `syntax = "proto3";
package grpc.health.v1;
service Health {
  rpc Check(HealthCheckRequest) returns (HealthCheckResponse);
  rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse);
}
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse { int32 status = 1; }
`

// healthy is a gRPC server with the health service and reflection. Its service "slow" never answers.
func healthy(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	slow := func(ctx context.Context, asked any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if of, isCheck := asked.(*healthpb.HealthCheckRequest); isCheck && of.GetService() == "slow" {
			<-over // beyond its deadline: an answer there would race with the client's
		}
		return handle(ctx, asked)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(slow))
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		close(over)
		server.Stop()
	})
	return listener.Addr().String()
}

func TestACallOfGRPCIsARequestWithItsConnection(t *testing.T) {
	// In k6's own streams, the tags of a message that was sent race with the stream's end.
	t.Setenv("GORACE", "exitcode=0")
	for _, how := range []string{"client.load([], './health.proto');", ""} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "health.proto"), []byte(healthProto), 0o600); err != nil {
			t.Fatal(err)
		}
		address := healthy(t)
		text := strings.NewReplacer("%s", address, "%r", freeAddress(t), "%load", how, "@reflect", map[bool]string{true: "true", false: "false"}[how == ""]).Replace(`
import { Client, Stream } from 'k6/net/grpc';
import { group } from 'k6';
const client = new Client();
%load
export default () => {
  client.connect('%s', { plaintext: true, reflect: @reflect });
  const check = (service, params) => client.invoke('grpc.health.v1.Health/Check', { service }, params);
  group('calls', () => {
    check('', { tags: { name: 'ok' } });
    check('nobody', { tags: { name: 'unknown' } });
    check('slow', { tags: { name: 'slow' }, timeout: '300ms' });
  });
  try { new Client().connect('%r', { plaintext: true, timeout: '1s' }); } catch { /* nobody is there */ }
  const stream = new Stream(client, 'grpc.health.v1.Health/Watch', { tags: { name: 'stream' } });
  stream.on('data', () => { client.close(); });
  stream.on('error', () => {});
  stream.write({});
};`)
		script := filepath.Join(folder, "own.js")
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := startOwn(t, script, knobs("http://127.0.0.1:1")).wait(t)
		if r.exit != 0 {
			t.Fatalf("exit code %d: %s", r.exit, &r.stderr)
		}
		record := r.record(t)
		ok, unknown, slow := record.by(t, "ok"), record.by(t, "unknown"), record.by(t, "slow")
		if ok.Status != 200 || ok.ErrorCode != 0 || *ok.GRPCStatus != 0 || ok.Group != "::calls" || ok.Protocol != "grpc" ||
			ok.URL != address+"/grpc.health.v1.Health/Check" || ok.MessagesSent != 1 || ok.MessagesReceived != 1 {
			t.Errorf("%+v", ok)
		}
		if unknown.Status != 200 || unknown.ErrorCode != 1000 || *unknown.GRPCStatus != 5 || unknown.Error == nil || !unknown.Reused {
			t.Errorf("%+v", unknown)
		}
		if slow.Status != 0 || slow.ErrorCode != 1050 || *slow.GRPCStatus != 4 || slow.EndUS-slow.TimeUS < 300_000 {
			t.Errorf("%+v", slow)
		}
		stream := record.by(t, "stream")
		if stream.Status != 200 || stream.ErrorCode != 0 || *stream.GRPCStatus != 1 || stream.MessagesReceived != 1 || stream.EndUS < stream.TimeUS {
			t.Errorf("%+v", stream)
		}
		refused := record.by(t, "connect")
		if refused.ErrorCode != 1212 || refused.Remote != nil || refused.Dial == nil || refused.Method != "CONNECT" {
			t.Errorf("%+v", refused)
		}
		for _, call := range []requestLine{ok, unknown, slow, stream} {
			if call.Dial == nil || *call.Dial != *ok.Dial || call.VU != 1 || *call.Remote != address {
				t.Errorf("its connection: %+v", call)
			}
		}
	}
}

// serveHealth answers calls on the connections of a wrapped listener, to the end of the test.
func serveHealth(t *testing.T, wrap func(net.Listener) net.Listener) (*grpc.Server, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(wrap(listener)) }()
	t.Cleanup(server.Stop)
	return server, listener.Addr().String()
}

// startCalls starts a script that connects to an address and makes calls: check(name) makes one.
func startCalls(t *testing.T, address, calls string) *run {
	t.Helper()
	folder := t.TempDir()
	script := filepath.Join(folder, "own.js")
	text := `
import { Client } from 'k6/net/grpc';
import { sleep } from 'k6';
const client = new Client();
client.load([], './health.proto');
const check = (name) => client.invoke('grpc.health.v1.Health/Check', {}, { tags: { name } });
export default () => {
  client.connect('` + address + `', { plaintext: true });
  ` + calls + `
};`
	for file, content := range map[string]string{filepath.Join(folder, "health.proto"): healthProto, script: text} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startOwn(t, script, knobs("http://127.0.0.1:1"))
}

func TestACallWhoseConnectionIsGoneSaysSo(t *testing.T) {
	t.Parallel()
	server, address := serveHealth(t, func(listener net.Listener) net.Listener { return listener })
	r := startCalls(t, address, `check('first'); sleep(2); check('late');`)
	r.eventually(t, "a call", func() bool {
		content, _ := os.ReadFile(filepath.Join(r.raw, "dials.jsonl"))
		return strings.Contains(string(content), `"kind":"dial"`)
	})
	time.Sleep(500 * time.Millisecond)
	server.Stop()
	record := r.wait(t).record(t)
	late := record.by(t, "late")
	if late.Status != 0 || late.ErrorCode != 1212 || *late.GRPCStatus != 14 || late.Remote != nil || late.Dial == nil {
		t.Errorf("%+v", late)
	}
}

// A goawayFirst sends back the first call of its first connection by a GOAWAY. The other connections are the server's.
type goawayFirst struct {
	net.Listener

	was bool
}

func (l *goawayFirst) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if l.was || err != nil {
		return conn, err
	}
	l.was = true
	go sendBack(conn)
	return l.Listener.Accept()
}

func sendBack(conn net.Conn) {
	framer := greet(conn)
	for framer != nil && nextStream(framer) != 0 {
		_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	}
}

func TestACallThatAGOAWAYSentBackIsOneCall(t *testing.T) {
	t.Parallel()
	_, address := serveHealth(t, func(listener net.Listener) net.Listener { return &goawayFirst{Listener: listener} })
	record := startCalls(t, address, `check('call');`).wait(t).record(t)
	call := record.by(t, "call")
	if call.Status != 200 || call.ErrorCode != 0 || *call.GRPCStatus != 0 {
		t.Errorf("%+v", call)
	}
	if call.SentAgain != 1 || call.FirstDial == 0 || call.FirstDial == *call.Dial || call.AgainUS > call.BlockedUS {
		t.Errorf("it was sent again: %+v", call)
	}
}
