package tlsrecord

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"connlab/collector/internal/packet"
)

// hello is what Go's own client sends first.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer func() { _ = server.Close() }()
	go func() {
		_ = tls.Client(client, config).Handshake()
		_ = client.Close()
	}()
	_ = server.SetDeadline(time.Now().Add(time.Minute))
	data := make([]byte, 1<<15)
	count, err := server.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return data[:count]
}

func TestAClientHelloTellsWhatItAsksFor(t *testing.T) {
	data := hello(t, &tls.Config{ServerName: "shop.example", NextProtos: []string{"h2", "http/1.1"}})
	if got, want := Describe(data), "ClientHello for shop.example offers h2, http/1.1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Describe(data[:Kept(data)]); got != "ClientHello" {
		t.Errorf("of what is kept: %q", got)
	}
	if got := KindOf(packet.StartOf(data[:Kept(data)])); got != ClientHello {
		t.Errorf("its kind is %d", got)
	}
}

func TestTheFirstBytesTellTheKindOfRecord(t *testing.T) {
	for _, test := range []struct {
		data string
		kept int
		want string
		kind Kind
	}{
		{"\x15\x03\x03\x00\x02\x02\x30", 7, "alert unknown_ca", Alert},
		{"\x15\x03\x03\x00\x02\x01\x00", 7, "alert close_notify", Alert},
		{"\x15\x03\x03\x00\x02\x02\xff", 7, "alert 255", Alert},
		{"\x15\x03\x03\x00\x13secretsecretsecrets", 5, "encrypted alert", Other},
		{"\x17\x03\x03\x00\x06secret", 5, "encrypted data", Other},
		{"\x16\x03\x03\x00\x7a\x02\x00secret", 6, "ServerHello", ServerHello},
		{"\x16\x03\x03\x00\x28\xf3secret", 6, "encrypted handshake", Other},
		{"\x14\x03\x03\x00\x01\x01", 5, "ChangeCipherSpec", Other},
		{"\x16\x03\x01\x00\x05", 5, "handshake", Other},
		{"\x16\x03\x03\x00\x46\x10key", 6, "ClientKeyExchange", ClientKeys},
		{"\x16\x03\x03\x00\x46\x0bkey", 6, "Certificate", ClientKeys},
		{"GET / HTTP/1.1", 0, "", None},
		{"\x16\x03\x01\xff\xff", 0, "", None},
		{"\x16\x03", 0, "", None},
		{"", 0, "", None},
	} {
		if kept, got := Kept([]byte(test.data)), Describe([]byte(test.data)); kept != test.kept || got != test.want {
			t.Errorf("%q: %d kept, %q", test.data, kept, got)
		}
		if kind := KindOf(packet.StartOf([]byte(test.data))); kind != test.kind {
			t.Errorf("%q: kind %d, want %d", test.data, kind, test.kind)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "shop.example", NextProtos: []string{"h2"}}))
	f.Add([]byte("\x15\x03\x03\x00\x02\x02\x30"))
	f.Fuzz(func(t *testing.T, data []byte) {
		said, kept := Describe(data), Kept(data)
		if kept > len(data) || kept > headBytes+alertLen || (kept > 0) != (said != "") {
			t.Errorf("%d of %d bytes kept, %q", kept, len(data), said)
		}
		for _, each := range []byte(said) {
			if each < ' ' || each > '~' {
				t.Errorf("%q", said)
			}
		}
	})
}
