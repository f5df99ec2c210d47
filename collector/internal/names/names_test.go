package names

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// engine is a name server that knows two instances, as the engine's own does.
func engine(t *testing.T) string {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	known := map[string][4]byte{"backend-1.": {10, 0, 0, 1}, "backend-2.": {10, 0, 0, 2}}
	go func() {
		buffer := make([]byte, sizeMax)
		for {
			size, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if message.Unpack(buffer[:size]) != nil {
				continue
			}
			message.Response = true
			message.Additionals = nil
			asked := message.Questions[0]
			if address, found := known[asked.Name.String()]; found && asked.Type == dnsmessage.TypeA {
				header := dnsmessage.ResourceHeader{Name: asked.Name, Class: asked.Class, TTL: 600}
				message.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: address}}}
			} else if !found {
				message.RCode = dnsmessage.RCodeNameError
			}
			if packed, err := message.Pack(); err == nil {
				_, _ = socket.WriteTo(packed, from)
			}
		}
	}()
	return socket.LocalAddr().String()
}

func addresses(t *testing.T, table Table, server string) map[string][]string {
	t.Helper()
	found, err := table.Ask(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for _, one := range found {
		told[one.Name] = one.Addresses
	}
	return told
}

func TestANameLeadsWhereTheTableSaysAndOthersArePassedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.json")
	if err := (Table{"api": "backend-1"}).Save(path); err != nil {
		t.Fatal(err)
	}
	server, err := Listen("127.0.0.1:0", path, engine(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	both := Table{"api": "", "backend-2": ""}
	want := map[string][]string{"api": {"10.0.0.1"}, "backend-2": {"10.0.0.2"}}
	if found := addresses(t, both, server.Address()); !reflect.DeepEqual(found, want) {
		t.Errorf("at first: %v, want %v", found, want)
	}
	if err := (Table{"api": "backend-2"}).Save(path); err != nil {
		t.Fatal(err)
	}
	want["api"] = []string{"10.0.0.2"}
	if found := addresses(t, both, server.Address()); !reflect.DeepEqual(found, want) {
		t.Errorf("after the move: %v, want %v", found, want)
	}
	if _, err := (Table{"nobody": ""}).Ask(t.Context(), server.Address()); err == nil {
		t.Error("a name that nobody has was answered")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestTheAnswerIsForTheNameThatWasAskedAndIsNotKeptForLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.json")
	if err := (Table{"api": "backend-1"}).Save(path); err != nil {
		t.Fatal(err)
	}
	server := &Server{path: path, passOn: engine(t)}
	name := dnsmessage.MustNewName("API.")
	question := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	packed, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	told, err := server.answer(packed)
	if err != nil {
		t.Fatal(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(told); err != nil {
		t.Fatal(err)
	}
	if len(answer.Answers) != 1 || answer.Answers[0].Header.Name != name || answer.Questions[0].Name != name {
		t.Fatalf("the answer is for another name: %v", answer.GoString())
	}
	if ttl := answer.Answers[0].Header.TTL; ttl != ttlSeconds {
		t.Errorf("TTL %d, want %d", ttl, ttlSeconds)
	}
}

func TestATableIsReadFromItsText(t *testing.T) {
	table, err := Parse("api.shop=backend-1 db=db")
	if want := (Table{"api.shop": "backend-1", "db": "db"}); err != nil || !reflect.DeepEqual(table, want) {
		t.Errorf("%v %v, want %v", table, err, want)
	}
	for _, bad := range []string{"api", "api=", "=backend-1", "a_b=backend-1", "api=a/b"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestTheFirstNameServerIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("# nameserver 10.0.0.1\nsearch a\nnameserver 127.0.0.11\nnameserver 10.0.0.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := NameServer(path); err != nil || found != "127.0.0.11:53" {
		t.Errorf("%q %v", found, err)
	}
	if err := os.WriteFile(path, []byte("search a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NameServer(path); err == nil {
		t.Error("none was found, and nothing was said")
	}
}
