package capture

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// A client may have any local port, even the number of a management port.
func TestTheFilterLeavesNoPortOut(t *testing.T) {
	for mode, want := range map[Mode]string{
		Headers:    "tcp",
		Handshakes: "tcp[tcpflags] & (tcp-syn|tcp-fin|tcp-rst) != 0 or (ip6[6] == 6 and ip6[53] & 7 != 0)",
	} {
		if got := filter(mode); got != want {
			t.Errorf("%s: got %q, want %q", mode, got, want)
		}
	}
}

func TestModesAreThoseOfTheModel(t *testing.T) {
	for _, name := range []string{"headers", "handshakes", "off"} {
		if mode, err := ParseMode(name); err != nil || string(mode) != name {
			t.Errorf("%s: %q, %v", name, mode, err)
		}
	}
	if _, err := ParseMode("all"); err == nil {
		t.Error("a mode that there is not was taken")
	}
}

func TestTcpdumpsWordsAreUnderstood(t *testing.T) {
	const whole = `tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 128 bytes
1 packet captured
12 packets received by filter
0 packets dropped by kernel
`
	listened := 0
	out := readOutput(strings.NewReader(whole), func() { listened++ }, nil)
	if listened != 1 || !out.complete() || *out.Captured != 1 || *out.Received != 12 || *out.DroppedByKernel != 0 {
		t.Errorf("listened %d times, %+v", listened, out)
	}

	out = readOutput(strings.NewReader("tcpdump: eth7: No such device exists\n(SIOCGIFHWADDR)\n"), func() { t.Error("it did not listen") }, nil)
	if out.complete() || !slices.Equal(out.messages, []string{"eth7: No such device exists", "(SIOCGIFHWADDR)"}) {
		t.Errorf("%+v", out)
	}
}

func TestTcpdumpSaysWhetherItHasAllPackets(t *testing.T) {
	for line, want := range map[string]bool{
		"tcpdump: 12 packets captured, 12 packets received by filter, 0 packets dropped by kernel":                                     true,
		"tcpdump: 1 packet captured, 1 packet received by filter, 0 packets dropped by kernel, 3 packets dropped by interface":         true,
		"tcpdump: 11 packets captured, 12 packets received by filter, 0 packets dropped by kernel":                                     false,
		"tcpdump: 11 packets captured, 12 packets received by filter, 1 packet dropped by kernel":                                      false,
		"tcpdump: 12 packets captured, 12 packets received by filter, 1 packet dropped by kernel":                                      false,
		"tcpdump: 99999999999999999999 packets captured, 99999999999999999999 packets received by filter, 0 packets dropped by kernel": false,
	} {
		told := make(chan statistics, 1)
		out := readOutput(strings.NewReader(line+"\n"), func() {}, told)
		close(told)
		soFar := <-told
		if got := soFar.allTaken(); got != want || out.complete() {
			t.Errorf("%s: %t, %+v", line, got, out)
		}
	}
}

func FuzzReadOutput(f *testing.F) {
	f.Add("tcpdump: listening on eth0\n1 packet captured\n99999999999999999999 packets dropped by kernel\n")
	f.Fuzz(func(_ *testing.T, text string) {
		readOutput(io.Reader(strings.NewReader(text)), func() {}, make(chan statistics, 1))
	})
}
