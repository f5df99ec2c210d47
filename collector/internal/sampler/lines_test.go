package sampler

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connlab/collector/internal/procfs"
	"connlab/collector/internal/sockdiag"
)

func TestNamesOfProcessesSurviveAsJSON(t *testing.T) {
	for comm, want := range map[string]string{
		"java": "java", `a"b\c`: `a"b\c`, "tab\tbell\a": "tab\tbell\a", "Grüße": "Grüße", "bad\xff": "bad\ufffd", "": "",
	} {
		line := appendProcesses(nil, []procfs.Process{{PID: 7, Comm: comm, OpenFiles: -1}})
		var got struct {
			Comm      string
			OpenFiles *int `json:"open_files"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Errorf("%q: %v in %s", comm, err, line)
		}
		if got.Comm != want || got.OpenFiles != nil {
			t.Errorf("%q came out as %+v", comm, got)
		}
	}
}

func FuzzAppendQuoted(f *testing.F) {
	f.Add("java\x00\n\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(appendQuoted(nil, text), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(text, ""); strings.ReplaceAll(got, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Errorf("%q came out as %q", text, got)
		}
	})
}

func TestSocketsOfOneAddressAndPortAreToldApart(t *testing.T) {
	any4 := netip.MustParseAddr("0.0.0.0")
	line := string(appendListeners(nil, []sockdiag.Listener{
		{Address: any4, Port: 80, Inode: 7}, {Address: any4, Port: 80, Inode: 5}, {Address: any4, Port: 81, Inode: 9},
	}))
	if strings.Count(line, "inode") != 2 || !strings.Contains(line, `"inode":5`) || strings.Contains(line, `"inode":9`) {
		t.Error(line)
	}
}

func TestOnlyWhatChangedIsWrittenUntilAFullLine(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"netstat": "TcpExt: ListenDrops ListenOverflows\nTcpExt: 0 0\n", "snmp": "Tcp: MaxConn\nTcp: -1\n", "sockstat": "TCP: tw 5\n",
	} {
		writeFile(t, filepath.Join(root, name), text)
	}
	d, err := openDeltas(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	line := func(full bool) string {
		t.Helper()
		if err := d.read(); err != nil {
			t.Fatal(err)
		}
		return string(d.appendTo(nil, full))
	}
	const all = `"TcpExt.ListenDrops":0,"TcpExt.ListenOverflows":0,"Tcp.MaxConn":-1,"sockstat.TCP.tw":5`
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want(line(true), all)
	want(line(false), "")
	writeFile(t, filepath.Join(root, "netstat"), "TcpExt: ListenDrops ListenOverflows\nTcpExt: 3 0\n")
	writeFile(t, filepath.Join(root, "sockstat"), "TCP: tw 4\n")
	want(line(false), `"TcpExt.ListenDrops":3,"sockstat.TCP.tw":4`)
	want(line(false), "")
	writeFile(t, filepath.Join(root, "snmp"), "Tcp: MaxConn\nTcp: -1\nUdp: NoPorts\nUdp: 0\n")
	want(line(false), `"Tcp.MaxConn":-1,"Udp.NoPorts":0`)
	want(line(true), `"TcpExt.ListenDrops":3,"TcpExt.ListenOverflows":0,"Tcp.MaxConn":-1,"Udp.NoPorts":0,"sockstat.TCP.tw":4`)
}

func TestACounterThatChangesWithTheSocketsStatesIsAMove(t *testing.T) {
	root := t.TempDir()
	write := func(drops, segments, inuse, mem string) {
		writeFile(t, filepath.Join(root, "netstat"), "TcpExt: ListenDrops\nTcpExt: "+drops+"\nIpExt: InOctets\nIpExt: "+mem+"\n")
		writeFile(t, filepath.Join(root, "snmp"), "Tcp: InSegs\nTcp: "+segments+"\n")
		writeFile(t, filepath.Join(root, "sockstat"), "TCP: inuse "+inuse+" alloc "+mem+" mem "+mem+"\n")
	}
	write("0", "0", "0", "0")
	d, err := openDeltas(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	d.appendTo(nil, true)
	for _, test := range []struct {
		what                        string
		drops, segments, inuse, mem string
		full, moved                 bool
	}{
		{"nothing", "0", "0", "0", "0", false, false},
		{"the memory of the whole machine's sockets", "0", "0", "0", "7", false, false},
		{"a segment", "0", "1", "0", "7", false, true},
		{"a segment, in a full line", "0", "2", "0", "7", true, true},
		{"nothing, in a full line", "0", "2", "0", "7", true, false},
		{"a dropped SYN", "1", "2", "0", "7", false, true},
		{"a socket", "1", "2", "1", "7", false, true},
	} {
		before := d.moves
		write(test.drops, test.segments, test.inuse, test.mem)
		if err := d.read(); err != nil {
			t.Fatal(err)
		}
		d.appendTo(nil, test.full)
		if moved := d.moves > before; moved != test.moved {
			t.Errorf("%s: a move is %v", test.what, moved)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
