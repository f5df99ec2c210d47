package sockdiag

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The recordings are the bytes of whole dumps, as a kernel sent them on a little-endian machine.
func TestRecordedListenersDecode(t *testing.T) {
	var listeners []Listener
	decode(t, "listeners", func(reply []byte) error {
		listener, err := decodeListener(reply)
		listeners = append(listeners, listener)
		return err
	})
	want := []Listener{
		{Address: netip.MustParseAddr("::1"), Port: 9091, Depth: 1, Limit: 4096, Inode: 1470003},
		{Address: netip.MustParseAddr("127.0.0.1"), Port: 9090, Limit: 4096, Inode: 1469997},
		// A backlog of 1 with two connections in the queue; the kernel has dropped three SYNs.
		{Address: netip.MustParseAddr("::"), Port: 8080, Depth: 2, Limit: 1, Drops: 3, Inode: 1461286},
	}
	if !slices.Equal(listeners, want) {
		t.Errorf("got %v, want %v", listeners, want)
	}
}

func TestRecordedConnectionsDecodeWithMappedAddressesAsIPv4(t *testing.T) {
	want := []string{
		"ESTABLISHED 127.0.0.1:8080 127.0.0.1:37808", // the end of a dual-stack server
		"ESTABLISHED 127.0.0.1:8080 127.0.0.1:37810",
		"ESTABLISHED 127.0.0.1:37808 127.0.0.1:8080",
		"ESTABLISHED 127.0.0.1:37810 127.0.0.1:8080",
		"ESTABLISHED [::1]:32934 [::1]:9091",
		"ESTABLISHED [::1]:9091 [::1]:32934",
	}
	if got := decodeSockets(t, "connections"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want = []string{"TIME_WAIT 127.0.0.1:58024 127.0.0.1:9090"}
	if got := decodeSockets(t, "time-wait"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBrokenRepliesAreErrors(t *testing.T) {
	whole := recording(t, "listeners")
	sequence := binary.NativeEndian.Uint32(whole[8:])
	message := func(kind uint16, body ...byte) []byte {
		b := make([]byte, headerBytes, headerBytes+len(body))
		binary.NativeEndian.PutUint32(b, uint32(headerBytes+len(body)))
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint32(b[8:], sequence)
		return append(b, body...)
	}
	denied := binary.NativeEndian.AppendUint32(nil, ^uint32(unix.EPERM)+1)
	for _, test := range []struct {
		name string
		part []byte
		want string
	}{
		{"the kernel refuses", message(unix.NLMSG_ERROR, denied...), "operation not permitted"},
		{"the kernel breaks off", message(unix.NLMSG_DONE, denied...), "operation not permitted"},
		{"an end without number", message(unix.NLMSG_DONE), "without its number"},
		{"an error without number", message(unix.NLMSG_ERROR), "without its number"},
		{"an answer to another", func() []byte { b := bytes.Clone(whole); b[8]++; return b }(), "another request"},
		{"half a header", whole[:7], "not a message"},
		{"half a message", whole[:100], "an item of 172 bytes in 100"},
		{"a message shorter than its header", []byte{3: 0, 0: 4, 15: 0}, "an item of 4 bytes"},
		{"a reply that is too short", message(messageType, 0, 0), "reply of 2 bytes"},
		{"an unknown family", message(messageType, bytes.Repeat([]byte{9}, replyBytes)...), "unknown address family 9"},
		{"no attributes", message(messageType, whole[headerBytes:headerBytes+replyBytes]...), "no drops"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := eachReply(test.part, sequence, func(reply []byte) error {
				_, err := decodeListener(reply)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func TestStatesHaveTheKernelsNames(t *testing.T) {
	for state, want := range map[State]string{
		unix.BPF_TCP_ESTABLISHED: "ESTABLISHED", unix.BPF_TCP_SYN_RECV: "SYN_RECV", unix.BPF_TCP_TIME_WAIT: "TIME_WAIT",
		unix.BPF_TCP_LISTEN: "LISTEN", unix.BPF_TCP_CLOSING: "CLOSING", 0: "STATE_0", 99: "STATE_99",
	} {
		if got := state.String(); got != want {
			t.Errorf("state %d is %q, want %q", uint8(state), got, want)
		}
	}
}

func FuzzEachReply(f *testing.F) {
	for _, name := range []string{"listeners", "connections", "time-wait"} {
		f.Add(recording(f, name))
	}
	f.Fuzz(func(_ *testing.T, part []byte) {
		var sequence uint32
		if len(part) >= headerBytes {
			sequence = binary.NativeEndian.Uint32(part[8:])
		}
		_, _ = eachReply(part, sequence, func(reply []byte) error {
			_, err := decodeListener(reply)
			return err
		})
	})
}

func decodeSockets(t *testing.T, name string) []string {
	t.Helper()
	var sockets []string
	decode(t, name, func(reply []byte) error {
		s, err := decodeSocket(reply)
		sockets = append(sockets, s.State.String()+" "+s.Local.String()+" "+s.Peer.String())
		return err
	})
	return sockets
}

func decode(t *testing.T, name string, visit func(reply []byte) error) {
	t.Helper()
	part := recording(t, name)
	done, err := eachReply(part, binary.NativeEndian.Uint32(part[8:]), visit)
	if err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Error("the end of the dump was not seen")
	}
}

func recording(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/linux-6.18", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
