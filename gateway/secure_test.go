package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connlab/gateway/internal/config"
	"connlab/gateway/internal/secure"
)

// certificates are a CA's own and, by it, those of a server of this name and of 127.0.0.1, packed as a run packs them.
func certificates(t *testing.T, name string) (files secure.Files, roots *x509.CertPool) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	must(err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for name, content := range map[string][]byte{
		"ca.pem": certificate, "server.pem": certificate,
		"server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		must(archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}))
		_, err := archive.Write(content)
		must(err)
	}
	must(archive.Close())
	must(zipped.Close())
	files, err = secure.Unpack(base64.StdEncoding.EncodeToString(packed.Bytes()))
	must(err)
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return files, roots
}

// secured are settings with TLS on the traffic port, and the client's own.
func secured(t *testing.T) (config.Config, *tls.Config) {
	t.Helper()
	settings := defaults
	var roots *x509.CertPool
	settings.Certificates, roots = certificates(t, "gateway")
	settings.TLS, settings.TLSMin, settings.TLSMax, settings.TLSSessionTickets = true, tls.VersionTLS12, tls.VersionTLS13, true
	return settings, &tls.Config{RootCAs: roots, ServerName: "gateway", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
}

func TestTheTrafficPortTakesTLS(t *testing.T) {
	for _, test := range []struct {
		name    string
		oldest  uint16
		newest  uint16
		tickets bool
		want    []string // of three connections, in their order
	}{
		{"both versions", tls.VersionTLS12, tls.VersionTLS13, true, []string{"TLSv1.3.", "TLSv1.3r", "TLSv1.3r"}},
		{"TLS 1.2", tls.VersionTLS12, tls.VersionTLS12, true, []string{"TLSv1.2.", "TLSv1.2r", "TLSv1.2r"}},
		{"no tickets", tls.VersionTLS13, tls.VersionTLS13, false, []string{"TLSv1.3.", "TLSv1.3.", "TLSv1.3."}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, _ := backend(t)
			settings, client := secured(t)
			settings.TLSMin, settings.TLSMax, settings.TLSSessionTickets = test.oldest, test.newest, test.tickets
			r := start(t, settings, addressOf(server))
			r.client.Transport = &http.Transport{TLSClientConfig: client, DisableKeepAlives: true}
			for range test.want {
				if status, body := r.get("/a"); status != http.StatusOK || body != "/a" {
					t.Fatalf("status %d, %q", status, body)
				}
			}
			told := r.state().Settings
			if told["tls"] != true || told["tlsMin"] != secure.VersionName(test.oldest) ||
				told["tlsMax"] != secure.VersionName(test.newest) || told["tlsSessionTickets"] != test.tickets {
				t.Errorf("settings: %v", told)
			}
			// A line is written after its answer, so the next connection's may come before it.
			written := lines[accessLine](r, "access")
			slices.SortFunc(written, func(a, b accessLine) int { return cmp.Compare(a.Connection, b.Connection) })
			var found []string
			for _, line := range written {
				found = append(found, line.SSLProtocol+line.SSLSessionReused)
			}
			if !slices.Equal(found, test.want) {
				t.Errorf("%v, want %v", found, test.want)
			}
		})
	}
}

func TestWithoutTLSALineHasNone(t *testing.T) {
	server, _ := backend(t)
	r := start(t, defaults, addressOf(server))
	r.get("/a")
	if told := r.state().Settings; told["tls"] != false || told["tlsMin"] != nil {
		t.Errorf("settings: %v", told)
	}
	if line := lines[accessLine](r, "access")[0]; line.SSLProtocol+line.SSLSessionReused != "" {
		t.Errorf("%+v", line)
	}
}

// The time of a handshake is none of the request's.
func TestARequestOverTLSBeginsAfterTheHandshake(t *testing.T) {
	server, _ := backend(t)
	settings, client := secured(t)
	r := start(t, settings, addressOf(server))
	const pause = 300 * time.Millisecond
	conn, err := tls.Dial("tcp", r.gateway.listeners[0].Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	time.Sleep(pause)
	if _, err := conn.Write([]byte("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.Close()
	r.eventually("a line", func(state gatewayState) bool { return state.Requests.Served == 1 })
	if line := lines[accessLine](r, "access")[0]; line.RequestTime >= pause.Seconds() {
		t.Errorf("%+v", line)
	}
}

func TestTheGatewaySpeaksTLSToServers(t *testing.T) {
	files, _ := certificates(t, "backend")
	others, _ := certificates(t, "backend")
	for _, test := range []struct {
		name     string
		upstream string
		trusts   secure.Files
		sessions int
		status   int
		text     string // in error.log
	}{
		{"whom it trusts", "backend", files, 0, 200, ""},
		{"whom it trusts, resumed", "backend", files, 1, 200, ""},
		{"whomever", secure.Any, nil, 0, 200, ""},
		{"another name", "other", files, 0, 502, "TLS handshake failed (tls: failed to verify certificate: x509: certificate is valid for backend, not other)"},
		{"another CA", "backend", others, 0, 502, "TLS handshake failed (tls: failed to verify certificate: x509: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			var resumed []bool
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				resumed = append(resumed, r.TLS.DidResume)
			}))
			var err error
			if server.TLS, err = files.Server(tls.VersionTLS12, tls.VersionTLS13, true); err != nil {
				t.Fatal(err)
			}
			server.StartTLS()
			t.Cleanup(server.Close)
			settings := defaults
			settings.UpstreamTLS, settings.TLSClientSessionCache, settings.DisableKeepAlives = test.upstream, test.sessions, true
			settings.Certificates = test.trusts
			r := start(t, settings, addressOf(server))
			for range 2 {
				if status, body := r.get("/"); status != test.status {
					t.Errorf("status %d, %q", status, body)
				}
			}
			if len(resumed) == 2 && resumed[1] != (test.sessions > 0) {
				t.Errorf("resumed: %v", resumed)
			}
			found := lines[accessLine](r, "access")[0]
			if found.Upstream != "1" {
				t.Errorf("a failed handshake has the dial before it, too: %+v", found)
			}
			if said := r.read("error.log"); test.text != "" &&
				!strings.Contains(said, test.text) || test.text != "" && !strings.Contains(said, "while SSL handshaking to upstream") {
				t.Errorf("%q", said)
			}
		})
	}
}

func TestServersWhoseCAIsNotKnownAreRefused(t *testing.T) {
	settings := defaults
	settings.UpstreamTLS, settings.Upstreams = "backend", []string{"127.0.0.1:1"}
	_, err := open(t.Context(), settings, places{raw: t.TempDir()}, nil)
	if err == nil || !strings.Contains(err.Error(), "no certificate of the CA") {
		t.Error(err)
	}
}
