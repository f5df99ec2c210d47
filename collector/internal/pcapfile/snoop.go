package pcapfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	snoopMagic             = 0x6f6f6e73 // "snoo", as the little-endian number that begins a file
	snoopHeaderBytes       = 16
	snoopRecordHeaderBytes = 24
)

var snoopIdentification = []byte("snoop\x00\x00\x00")

// snoopLinkTypes are the LINKTYPE_ values of snoop's datalink types, by RFC 1761.
var snoopLinkTypes = map[uint32]uint32{
	0: 1, // IEEE 802.3
	4: 1, // Ethernet
}

// snoop reads the records of a snoop file, which Solaris and illumos write: RFC 1761.
type snoop struct {
	linkType uint32
}

// readHeader reads the file header, whose first bytes have been recognised.
func (s *snoop) readHeader(r *Reader) error {
	if !r.need(snoopHeaderBytes) {
		return r.cut("the file header", snoopHeaderBytes)
	}
	h := r.data[r.pos:][:snoopHeaderBytes]
	if !bytes.HasPrefix(h, snoopIdentification) {
		return &ForeignError{r.name, describe(snoopMagic)}
	}
	version, datalink := binary.BigEndian.Uint32(h[8:]), binary.BigEndian.Uint32(h[12:])
	linkType, known := snoopLinkTypes[datalink]
	if version != 2 || !known {
		return &ForeignError{r.name, fmt.Sprintf("it is in the snoop format, version %d, with the datalink type %d: convert it with editcap -F pcap", version, datalink)}
	}
	s.linkType = linkType
	r.pos += snoopHeaderBytes
	return nil
}

// next reads one record.
func (s *snoop) next(r *Reader, rec *Record) error {
	if !r.need(snoopRecordHeaderBytes) {
		return r.endIn("a record header", snoopRecordHeaderBytes)
	}
	h := r.data[r.pos:][:snoopRecordHeaderBytes]
	onWire, captured, length := binary.BigEndian.Uint32(h), binary.BigEndian.Uint32(h[4:]), binary.BigEndian.Uint32(h[8:])
	if captured > recordBytesMax {
		return r.damaged(fmt.Sprintf("a record claims %d captured bytes", captured))
	}
	// A record is padded, by as much as its writer likes.
	if length < snoopRecordHeaderBytes+captured || length > blockBytesMax {
		return r.damaged(fmt.Sprintf("a record with %d captured bytes claims a length of %d bytes", captured, length))
	}
	microseconds := int64(binary.BigEndian.Uint32(h[20:]))
	*rec = Record{TimeNs: int64(binary.BigEndian.Uint32(h[16:]))*1e9 + microseconds*1e3, WireLen: max(onWire, captured), LinkType: s.linkType}
	if microseconds >= 1e6 { // more than a second: its meaning is unknown
		rec.TimeNs, rec.Untimed = 0, true
	}
	if !r.need(int(length)) {
		return r.cut("a record", int64(length))
	}
	end := r.pos + snoopRecordHeaderBytes + int(captured)
	rec.Data = r.data[r.pos+snoopRecordHeaderBytes : end : end]
	r.pos += int(length)
	return nil
}
