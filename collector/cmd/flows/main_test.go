package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connlab/collector/internal/flowtest"
)

// capture returns a capture of one connection with an answer.
func capture() []byte {
	c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8080", 1, 2).
		Open().Data(flowtest.Client, 100).Data(flowtest.Server, 200).Close(flowtest.Client)
	return flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, flowtest.Packets(flowtest.Ethernet, c.Segments))
}

// flows runs the program.
func flows(arguments ...string) (code int, stdout, stderr string) {
	return flowsOf("", arguments...)
}

// flowsOf runs the program on a standard input.
func flowsOf(stdin string, arguments ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(arguments, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestACaptureBecomesParquetAndLines(t *testing.T) {
	path := write(t, "capture.pcap", capture())
	out := filepath.Join(filepath.Dir(path), "flows.parquet")
	code, stdout, stderr := flows("--json", "--out", out, path)
	if code != exitOK || stderr != "" {
		t.Fatalf("code %d, %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	var connection struct {
		Established   bool   `json:"established"`
		TimeWaitOwner string `json:"time_wait_owner"`
		ServerBytes   int    `json:"server_unique_bytes"`
	}
	if err := json.Unmarshal([]byte(lines[1]), &connection); err != nil || !connection.Established ||
		connection.TimeWaitOwner != "client" || connection.ServerBytes != 200 {
		t.Errorf("%v, %s", err, lines[1])
	}
	written, err := os.ReadFile(out)
	if err != nil || !bytes.HasPrefix(written, []byte("PAR1")) || !bytes.HasSuffix(written, []byte("PAR1")) {
		t.Errorf("no Parquet: %v", err)
	}
	if left, _ := filepath.Glob(out + ".part"); left != nil {
		t.Errorf("%v is left over", left)
	}
}

func TestSeveralCapturesAreReadAsOne(t *testing.T) {
	whole := capture()
	const header, half = 24, 24 + 2*(16+74) // after the SYN and the SYN-ACK
	first := write(t, "1.pcap", whole[:half])
	second := write(t, "2.pcap", append(bytes.Clone(whole[:header]), whole[half:]...))
	_, together, _ := flows("--json", first, second)
	_, alone, _ := flows("--json", write(t, "all.pcap", whole))
	if together != alone {
		t.Errorf("together:\n%s\nalone:\n%s", together, alone)
	}
}

func TestACutCaptureGivesWhatWasReadAndSaysWhatIsLost(t *testing.T) {
	whole := capture()
	path := write(t, "capture.pcap", whole[:len(whole)-10])
	code, stdout, stderr := flows("--json", path)
	want := "flows: " + path + ": unreadable from byte "
	if code != exitPartial || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "the file ends inside a record") || !strings.Contains(stderr, "packets before it were read") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if !strings.Contains(stdout, `"complete":false`) || !strings.Contains(stdout, `"kind":"flow"`) {
		t.Errorf("%s", stdout)
	}
}

func TestThePacketsOfAllRecordsAreAllPackets(t *testing.T) {
	path := write(t, "capture.pcap", capture())
	_, records, _ := flows("--json", path)
	code, stdout, stderr := flowsOf(records, "--packets", "-", path)
	if code != exitOK || stderr != "" {
		t.Fatalf("code %d, %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 11 { // header, 9 packets, end
		t.Fatalf("%d lines", len(lines))
	}
	want := `{"kind":"packet","connection":1,"number":2,"time_us":1735689600000125,"time_ns":null,"from":"server",` +
		`"flags":["SYN","ACK"],"seq":0,"ack":1,"raw_seq":2,"raw_ack":2,"payload_bytes":0,"window":502,"tls":null,"cut_bytes":0}`
	if lines[2] != want {
		t.Errorf("%s\nwant %s", lines[2], want)
	}
	if end := `{"kind":"end","complete":true,"unreadable":[],"packets":9}`; lines[10] != end {
		t.Errorf("%s", lines[10])
	}
	if _, again, _ := flows("--packets", write(t, "chosen.jsonl", []byte(records)), path); again != stdout {
		t.Errorf("from a file:\n%s", again)
	}
}

func TestPacketsBeforeACutAreWrittenWithTheMessageOfRecords(t *testing.T) {
	whole := capture()
	path := write(t, "capture.pcap", whole[:len(whole)-10])
	_, records, wantStderr := flows("--json", path)
	code, stdout, stderr := flowsOf(records, "--packets", "-", path)
	if code != exitPartial || stderr != wantStderr {
		t.Errorf("code %d, %s", code, stderr)
	}
	if strings.Count(stdout, `"kind":"packet"`) != 8 || !strings.Contains(stdout, `"complete":false,"unreadable":[{"file":1,`) {
		t.Errorf("%s", stdout)
	}
}

func TestWrongChoicesAreOneLineAndWriteNothing(t *testing.T) {
	path := write(t, "capture.pcap", capture())
	wireless := write(t, "wireless.pcap", flowtest.Capture(flowtest.Pcap, 105, 128, []flowtest.Packet{{Data: make([]byte, 60)}}))
	row := `{"id":1,"client_address":"10.0.0.1","client_port":40000,"server_address":"10.0.0.2","server_port":8080,"first_time_us":0,"last_time_us":9}`
	for _, c := range []struct {
		stdin     string
		arguments []string
		stderr    string
	}{
		{"", []string{"--json", path}, "--packets goes with neither --out nor --json (flows --help says more)"},
		{"", []string{"--out", "x", path}, "--packets goes with neither --out nor --json (flows --help says more)"},
		{"", []string{"-"}, "standard input cannot be both the chosen connections and a capture"},
		{row + "\nnone\n", []string{path}, "standard input: line 2: invalid character 'o' in literal null (expecting 'u')"},
		{`{"id":1}`, []string{path}, "standard input: line 1: it needs id, client_address, client_port, server_address, server_port, first_time_us and last_time_us"},
		{strings.Replace(row, "10.0.0.1", "", 1), []string{path}, "standard input: line 1: an address is empty"},
		{strings.Replace(row, "10.0.0.1", "there", 1), []string{path}, `standard input: line 1: ParseAddr("there"): unable to parse IP`},
		{strings.Replace(row, "40000", "65536", 1), []string{path}, "standard input: line 1: json: cannot unmarshal number 65536 into Go struct field .client_port of type uint16"},
		{row, []string{"none.pcap"}, "none.pcap: not a capture that can be read: no such file or directory"},
		{row, []string{wireless}, wireless + ": packets of link-layer type 105, which is not supported"},
	} {
		code, stdout, stderr := flowsOf(c.stdin, append([]string{"--packets", "-"}, c.arguments...)...)
		if code != exitUsage || stdout != "" || stderr != "flows: "+c.stderr+"\n" {
			t.Errorf("%v: code %d, %q, want %q", c.arguments, code, stderr, c.stderr)
		}
	}
	code, _, stderr := flows("--packets", "none.jsonl", path)
	if code != exitUsage || stderr != "flows: open none.jsonl: no such file or directory\n" {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestWhatCannotBeReadIsOneLineAndWritesNothing(t *testing.T) {
	good := write(t, "good.pcap", capture())
	garbage := write(t, "garbage.pcap", []byte("this is not a capture"))
	wireless := write(t, "wireless.pcap", flowtest.Capture(flowtest.Pcap, 105, 128, []flowtest.Packet{{Data: make([]byte, 60)}}))
	for _, c := range []struct {
		arguments []string
		stderr    string
	}{
		{nil, "flows: no capture is named (flows --help says more)"},
		{[]string{"--fast", good}, "flows: flag provided but not defined: -fast (flows --help says more)"},
		{[]string{garbage}, "flows: " + garbage + ": not a capture that can be read: it begins with the bytes 74 68 69 73, neither pcap, pcapng nor snoop"},
		{[]string{good, garbage}, "flows: " + garbage + ": not a capture that can be read: it begins with the bytes 74 68 69 73, neither pcap, pcapng nor snoop"},
		{[]string{"none.pcap"}, "flows: none.pcap: not a capture that can be read: no such file or directory"},
		{[]string{write(t, "empty.pcap", nil)}, "it is empty"},
		{[]string{wireless}, "flows: " + wireless + ": packets of link-layer type 105, which is not supported"},
		{[]string{"--out", good, good}, "flows: --out " + good + " would overwrite a capture"},
	} {
		out := filepath.Join(t.TempDir(), "flows.parquet")
		code, stdout, stderr := flows(append([]string{"--out", out}, c.arguments...)...)
		if code != exitUsage || stdout != "" || !strings.HasSuffix(stderr, c.stderr+"\n") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: code %d, %q, want %q", c.arguments, code, stderr, c.stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: a file was written", c.arguments)
		}
	}
	if now, err := os.ReadFile(good); err != nil || !bytes.Equal(now, capture()) {
		t.Errorf("the capture was changed: %v", err)
	}
}

func TestWhatCannotBeWrittenIsAFailure(t *testing.T) {
	path := write(t, "capture.pcap", capture())
	out := filepath.Join(t.TempDir(), "none", "flows.parquet")
	code, _, stderr := flows("--out", out, path)
	if code != exitFailed || !strings.Contains(stderr, "no such file or directory") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestSkippedPacketsAreSaid(t *testing.T) {
	frame := make([]byte, 60)
	frame[12], frame[13], frame[14] = 0x08, 0x00, 0x55 // IPv4 of version 5
	bad := flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, []flowtest.Packet{{Data: frame}})[24:]
	code, _, stderr := flows("--json", write(t, "capture.pcap", append(capture(), bad...)))
	if code != exitOK || !strings.Contains(stderr, "flows: 1 of 10 packets have headers that contradict themselves, or end inside them, and were skipped\n") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestTunnelsAreSaidByTheirKind(t *testing.T) {
	frame := make([]byte, 60)
	frame[12], frame[13], frame[14], frame[14+3], frame[14+9] = 0x08, 0x00, 0x45, 46, 47 // IPv4, and in it GRE
	tunnel := flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, []flowtest.Packet{{Data: frame}})[24:]
	code, stdout, stderr := flows("--json", write(t, "capture.pcap", append(capture(), tunnel...)))
	if code != exitOK || stderr != "flows: 1 of 10 packets are in GRE tunnels and were skipped\n" ||
		!strings.Contains(stdout, `"skipped_not_tcp":0,"skipped_gre":1,"skipped_vxlan":0,`) {
		t.Errorf("code %d, %s\n%s", code, stderr, stdout)
	}
}

func TestLengthsBeyondTheFrameAreBelievedAndSaid(t *testing.T) {
	whole := capture()
	at := 24 + 16 + 14 + 2 // the SYN's length in its IP header
	whole[at], whole[at+1] = 0x89, 0x40
	code, stdout, stderr := flows("--json", write(t, "capture.pcap", whole))
	if code != exitOK || stderr != "flows: 1 of 9 packets claim more bytes than their frames had, and were counted as they claim\n" ||
		!strings.Contains(stdout, `"beyond_frame_packets":1,`) {
		t.Errorf("code %d, %s\n%s", code, stderr, stdout)
	}
}

func TestALinkThatCannotBeReadIsSaidWithItsFile(t *testing.T) {
	good, none := write(t, "good.pcap", capture()), write(t, "none.pcap", capture()[:24])
	wireless := write(t, "wireless.pcap", flowtest.Capture(flowtest.Pcap, 105, 128, []flowtest.Packet{{Data: make([]byte, 60)}}))
	if code, _, stderr := flows("--json", none, wireless); code != exitUsage ||
		stderr != "flows: "+wireless+": packets of link-layer type 105, which is not supported\n" {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, _, stderr := flows("--json", good, wireless); code != exitOK ||
		stderr != "flows: 1 of 10 packets have a link-layer type that is not supported (105, first in "+wireless+") and were skipped\n" {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestAnImpossibleTimeMakesNoHandshake(t *testing.T) {
	whole := capture()
	copy(whole[24+16+74+16+74+4:], []byte{0, 0, 0, 0x80}) // the handshake's last segment, 2147 s late
	code, stdout, stderr := flows("--json", write(t, "capture.pcap", whole))
	if code != exitOK || !strings.Contains(stderr, "1 of 9 packets have no time, or an impossible one, and were skipped") ||
		strings.Contains(stdout, `"handshake_us":21`) {
		t.Errorf("code %d, %s\n%s", code, stderr, stdout)
	}
}

func TestHelpIsNoError(t *testing.T) {
	if code, stdout, _ := flows("--help"); code != exitOK || stdout != usage {
		t.Errorf("code %d, %s", code, stdout)
	}
}
