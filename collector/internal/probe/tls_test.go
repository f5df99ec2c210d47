package probe

import (
	"bytes"
	"crypto/tls"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAListenerTellsByHandshakesWhatItTakes(t *testing.T) {
	for _, test := range []struct {
		name           string
		oldest, newest uint16
		tickets, http2 bool
		want           Handshakes
	}{
		{"both versions", tls.VersionTLS12, tls.VersionTLS13, true, true, Handshakes{Oldest: "TLSv1.2", Newest: "TLSv1.3", HTTP2: true}},
		{"TLS 1.2, no tickets", tls.VersionTLS12, tls.VersionTLS12, false, false, Handshakes{Oldest: "TLSv1.2", Newest: "TLSv1.2"}},
		{"TLS 1.3", tls.VersionTLS13, tls.VersionTLS13, true, false, Handshakes{Oldest: "TLSv1.3", Newest: "TLSv1.3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.EnableHTTP2 = test.http2
			server.TLS = &tls.Config{MinVersion: test.oldest, MaxVersion: test.newest, SessionTicketsDisabled: !test.tickets}
			// A server that is left in the middle of a handshake says so.
			var said bytes.Buffer
			server.Config.ErrorLog = log.New(&said, "", 0)
			server.StartTLS()
			defer func() {
				server.Close()
				if strings.Contains(said.String(), "handshake") {
					t.Error(said.String())
				}
			}()
			found, err := TLS(server.Listener.Addr().String(), test.oldest, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if tickets := found.Tickets; test.oldest == tls.VersionTLS12 && (tickets == nil || *tickets != test.tickets) ||
				test.oldest == tls.VersionTLS13 && tickets != nil {
				t.Errorf("tickets: %v", tickets)
			}
			found.Tickets = nil
			if *found != test.want {
				t.Errorf("%+v, want %+v", *found, test.want)
			}
		})
	}
}

func TestAListenerWithoutTLSIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if found, err := TLS(server.Listener.Addr().String(), tls.VersionTLS12, time.Minute); err == nil {
		t.Errorf("%+v", found)
	}
}
