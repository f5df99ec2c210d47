package capture

import "fmt"

// A Mode says which packets are kept.
type Mode string

// The modes: the headers of every TCP packet, those of SYN, FIN and RST alone, or nothing.
const (
	Headers    Mode = "headers"
	Handshakes Mode = "handshakes"
	Off        Mode = "off"
)

// ParseMode checks a mode's name.
func ParseMode(name string) (Mode, error) {
	switch mode := Mode(name); mode {
	case Headers, Handshakes, Off:
		return mode, nil
	}
	return "", fmt.Errorf("%q is not a capture mode: want %s, %s or %s", name, Headers, Handshakes, Off)
}

// filter is the capture's filter in the language of pcap-filter(7). It need not leave out the lab's own traffic, which
// goes over the loopback.
func filter(mode Mode) string {
	if mode == Handshakes {
		// The language looks into TCP below IPv4 only. Below IPv6 the flags are byte 13 behind a header of 40 bytes:
		// FIN 1, SYN 2, RST 4.
		return "tcp[tcpflags] & (tcp-syn|tcp-fin|tcp-rst) != 0 or (ip6[6] == 6 and ip6[53] & 7 != 0)"
	}
	return "tcp"
}
