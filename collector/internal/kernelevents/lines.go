package kernelevents

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

type kind uint32

const (
	queuedKind kind = iota + 1
	acceptedKind
	connectEndedKind
	retransmittedKind
	synackRetransmittedKind
	resetSentKind
	resetAnsweredKind
	resetReceivedKind
	droppedKind
)

var kinds = map[kind]string{
	queuedKind: "queued", acceptedKind: "accepted", connectEndedKind: "connect_ended",
	retransmittedKind: "retransmitted", synackRetransmittedKind: "synack_retransmitted",
	resetSentKind: "reset_sent", resetAnsweredKind: "reset_sent", resetReceivedKind: "reset_received", droppedKind: "dropped",
}

// waitingMax bounds how many connections are remembered until somebody accepts them; no queue of a kernel is longer.
const waitingMax = 1 << 20

// noDrop are reasons that say nothing of the path: none, and what a socket had received as its program closed it.
var noDrop = []string{"", "NOT_SPECIFIED", "QUEUE_PURGE"}

// lines turns what the programs hand over into lines of events.jsonl.
type lines struct {
	// waiting has, by the kernel's socket, when a connection entered an accept queue.
	waiting      map[uint64]uint64
	resetReasons map[uint32]string
	dropReasons  map[uint32]string
	wall         wall
}

// wall turns the kernel's steady clock into the wall clock, as both stand now.
type wall struct{ offsetNs int64 }

func (w *wall) read() {
	var steady unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &steady)
	w.offsetNs = time.Now().UnixNano() - steady.Nano()
}

// append adds the line about one record; none, if the kernel drops a packet without a reason.
func (l *lines) append(to []byte, raw []byte) []byte {
	if len(raw) < recordBytes {
		return to
	}
	is := kind(binary.NativeEndian.Uint32(raw[recordKind:]))
	reason := binary.NativeEndian.Uint32(raw[recordReason:])
	if is == droppedKind && slices.Contains(noDrop, l.dropReasons[reason]) {
		return to
	}
	name, known := kinds[is]
	if !known {
		return to
	}
	ns := binary.NativeEndian.Uint64(raw[recordTime:])
	to = append(to, `{"kind":"`...)
	to = append(to, name...)
	to = append(to, `","time_us":`...)
	to = strconv.AppendInt(to, (int64(ns)+l.wall.offsetNs)/1000, 10)
	here, there := "local", "peer"
	switch is {
	case droppedKind:
		here, there = "from", "to" // the kernel does not say on which way the packet was
	case resetAnsweredKind:
		here, there = "peer", "local" // it came from the peer
	}
	to = appendEnd(to, here, raw, recordLocal, binary.NativeEndian.Uint16(raw[recordLocalPort:]))
	to = appendEnd(to, there, raw, recordPeer, binary.BigEndian.Uint16(raw[recordPeerPort:]))
	switch is {
	case queuedKind:
		if len(l.waiting) < waitingMax {
			l.waiting[binary.NativeEndian.Uint64(raw[recordSocket:])] = ns
		}
	case acceptedKind:
		socket := binary.NativeEndian.Uint64(raw[recordSocket:])
		to = append(to, `,"wait_us":`...)
		if since, found := l.waiting[socket]; found && since <= ns {
			to = strconv.AppendUint(to, (ns-since)/1000, 10)
		} else {
			to = append(to, "null"...)
		}
		delete(l.waiting, socket)
		to = appendText(to, "by", command(raw))
	case connectEndedKind:
		to = appendText(to, "error", unix.ErrnoName(unix.Errno(reason)))
	case retransmittedKind:
		to = appendText(to, "flags", flags(raw[recordFlags]))
	case resetSentKind, resetAnsweredKind:
		to = appendText(to, "reason", l.resetReasons[reason])
		to = appendText(to, "by", command(raw))
	case droppedKind:
		to = appendText(to, "flags", flags(raw[recordFlags]))
		to = appendText(to, "reason", l.dropReasons[reason])
	}
	return append(to, "}\n"...)
}

func appendEnd(to []byte, name string, raw []byte, place int, port uint16) []byte {
	address := netip.AddrFrom16([16]byte(raw[place : place+addressBytes])).Unmap()
	if binary.NativeEndian.Uint16(raw[recordFamily:]) == unix.AF_INET {
		address = netip.AddrFrom4([4]byte(raw[place : place+4]))
	}
	to = append(to, `,"`...)
	to = append(to, name...)
	to = append(to, `":"`...)
	to = address.AppendTo(to)
	to = append(to, `","`...)
	to = append(to, name...)
	to = append(to, `_port":`...)
	return strconv.AppendUint(to, uint64(port), 10)
}

// appendText adds a text of plain characters, or null where there is none.
func appendText(to []byte, name, text string) []byte {
	to = append(to, `,"`...)
	to = append(to, name...)
	if text == "" {
		return append(to, `":null`...)
	}
	to = append(to, `":`...)
	return strconv.AppendQuoteToASCII(to, text)
}

// command is the name of the program that ran; of what is no plain character a question mark stands there.
func command(raw []byte) string {
	text := raw[recordBy : recordBy+commandBytes]
	name := make([]byte, 0, commandBytes)
	for _, letter := range text {
		if letter == 0 {
			break
		}
		if letter < ' ' || letter > '~' {
			letter = '?'
		}
		name = append(name, letter)
	}
	return string(name)
}

// flags are the letters of a packet's flags, as tcpdump has them: S, SA, R.
func flags(bits byte) string {
	var text []byte
	for index, letter := range []byte("FSRPAUEC") {
		if bits&(1<<index) != 0 {
			text = append(text, letter)
		}
	}
	return string(text)
}
