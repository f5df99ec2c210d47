// Package pcapfile reads packet captures in the pcap, pcapng and snoop formats.
//
// A capture in a regular file is mapped into memory and handed on without a
// copy; anything else (a pipe, standard input) is read through a buffer of
// bounded size. The formats are described by the IETF drafts
// draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng, and by RFC 1761.
package pcapfile

import (
	"fmt"
)

// Record is one captured packet.
type Record struct {
	// TimeNs is the time of capture, in nanoseconds since the Unix epoch.
	TimeNs int64
	// Data holds the captured bytes. They are valid until the next call of Next.
	Data []byte
	// WireLen is the length in bytes that the packet had on the wire; more than
	// len(Data) when the capture kept only the packet's beginning.
	WireLen uint32
	// LinkType is the packet's link-layer type, a LINKTYPE_ value.
	LinkType uint32
	// FineClock says that the packet's clock ticks finer than a microsecond.
	FineClock bool
	// Untimed says that the file holds no time for this packet (a Simple Packet
	// Block of pcapng), or an impossible one: its fraction of a second is more
	// than a second, or it lies beyond the year 2262. TimeNs is then 0.
	Untimed bool
}

// ForeignError says that a file is not a capture that this package reads.
type ForeignError struct {
	Name string // the file
	Why  string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: not a capture that can be read: %s", e.Name, e.Why)
}

// DamageError says that a capture could be read only up to an offset: it is cut
// short there, or what stands there makes no sense.
type DamageError struct {
	Name        string // the file
	Offset      int64  // in bytes, of the first record or block that was not read
	PacketsRead uint64 // before it
	Why         string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: unreadable from byte %d on: %s", e.Name, e.Offset, e.Why)
}

// recordBytesMax bounds what one packet may claim to hold. It is libpcap's
// MAXIMUM_SNAPLEN: beyond it a length is damage, not a packet.
const recordBytesMax = 262144

// blockBytesMax bounds a pcapng block that has to be looked into: a packet and
// a generous amount of options. Other blocks are skipped whatever their length.
const blockBytesMax = 1 << 20
