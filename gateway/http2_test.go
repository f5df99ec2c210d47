package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// over2 is a client that speaks HTTP/2 alone: in plain text where there is no TLS.
func over2(secured *tls.Config) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP2(secured != nil)
	protocols.SetUnencryptedHTTP2(secured == nil)
	return &http.Client{Transport: &http.Transport{Protocols: &protocols, TLSClientConfig: secured}}
}

// backend2 answers over HTTP/2 in plain text, a request for /crowd when four of them wait at once.
func backend2(t *testing.T) *httptest.Server {
	t.Helper()
	var together crowd
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/crowd" {
			<-together.arrive(4)
		}
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestOneConnectionCarriesManyRequests(t *testing.T) {
	for _, with := range []string{"TLS", "plain text"} {
		t.Run(with, func(t *testing.T) {
			server := backend2(t)
			settings, client := secured(t)
			settings.TLS = with == "TLS"
			settings.HTTP2, settings.HTTP2MaxConcurrentStreams, settings.UpstreamHTTP2 = true, 250, true
			r := start(t, settings, addressOf(server))
			if !settings.TLS {
				client = nil
			}
			r.client = over2(client)
			if status, body := r.get("/"); status != http.StatusOK || body != "HTTP/2.0" {
				t.Fatalf("status %d, %q", status, body)
			}
			r.together(4, "/crowd")
			state := r.state()
			if state.Connections.Open != 1 || state.Connections.Idle != 1 || state.Connections.Opened != 1 || state.Clients.Open != 1 {
				t.Errorf("%+v", state)
			}
			found := lines[accessLine](r, "access")
			numbers := map[string]bool{}
			for _, line := range found {
				if line.Connection != 1 || line.Upstream != "1" || line.Protocol != "HTTP/2.0" || line.Completion != "OK" ||
					line.Sent != "-" || line.BytesSent != line.BodyBytesSent {
					t.Errorf("%+v", line)
				}
				numbers[fmt.Sprint(line.ConnectionRequests)+" "+line.UpstreamRequests] = true
			}
			if len(found) != 5 || len(numbers) != 5 {
				t.Errorf("requests are not told apart: %v", numbers)
			}
		})
	}
}

func TestWithoutHTTP2OnlyHTTP1IsSpoken(t *testing.T) {
	server, _ := backend(t)
	settings, client := secured(t)
	r := start(t, settings, addressOf(server))
	r.client = over2(client)
	if status, body := r.get("/"); status != 0 || !strings.Contains(body, "no application protocol") {
		t.Errorf("status %d, %q", status, body)
	}
}

// A request that finds no place on the server's connection gets one of its own, as Go does it.
func TestStreamsAreBounded(t *testing.T) {
	server := backend2(t)
	settings, client := secured(t)
	settings.HTTP2, settings.HTTP2MaxConcurrentStreams, settings.UpstreamHTTP2 = true, 3, true
	r := start(t, settings, addressOf(server))
	r.client = over2(client)
	r.get("/")
	r.together(4, "/crowd")
	connections := map[int64]bool{}
	for _, line := range lines[accessLine](r, "access") {
		connections[line.Connection] = true
	}
	if len(connections) != 2 {
		t.Errorf("%v", connections)
	}
}

func TestAServerWithoutHTTP2Fails(t *testing.T) {
	server, _ := backend(t)
	settings := defaults
	settings.UpstreamHTTP2 = true
	r := start(t, settings, addressOf(server))
	if status, _ := r.get("/"); status != http.StatusBadGateway {
		t.Errorf("status %d", status)
	}
	_ = r.stop()
	if said := r.read("error.log"); !strings.Contains(said, "upstream: \""+addressOf(server)) {
		t.Errorf("%q", said)
	}
}
