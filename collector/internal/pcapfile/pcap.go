package pcapfile

import (
	"fmt"
)

const (
	pcapHeaderBytes       = 24
	pcapRecordHeaderBytes = 16
)

// pcap reads the records of a pcap file.
type pcap struct {
	order bigEndian
	// tickNs is the unit of the records' fraction of a second.
	tickNs   int64
	linkType uint32
	// dataBytesMax is what a record may claim to hold.
	dataBytesMax uint32
}

// readHeader reads the file header, whose magic number has been recognised.
func (p *pcap) readHeader(r *Reader) error {
	if !r.need(pcapHeaderBytes) {
		return r.cut("the file header", pcapHeaderBytes)
	}
	h := r.data[r.pos:][:pcapHeaderBytes]
	snaplen := p.order.uint32(h[16:])
	// Some writers leave the snaplen 0 or keep more than it says.
	p.dataBytesMax = min(max(snaplen, recordBytesMax), blockBytesMax)
	// The upper bits say how long the frame check sequence is.
	p.linkType = p.order.uint32(h[20:]) & 0x03ffffff
	r.pos += pcapHeaderBytes
	return nil
}

// next reads one record.
func (p *pcap) next(r *Reader, rec *Record) error {
	if !r.need(pcapRecordHeaderBytes) {
		return r.endIn("a record header", pcapRecordHeaderBytes)
	}
	h := r.data[r.pos:][:pcapRecordHeaderBytes]
	captured := p.order.uint32(h[8:])
	if captured > p.dataBytesMax {
		return r.damaged(fmt.Sprintf("a record claims %d captured bytes", captured))
	}
	length := pcapRecordHeaderBytes + int(captured)
	fractionNs := int64(p.order.uint32(h[4:])) * p.tickNs
	rec.TimeNs, rec.Untimed = int64(p.order.uint32(h))*1e9+fractionNs, false
	if fractionNs >= 1e9 { // more than a second: its meaning is unknown
		rec.TimeNs, rec.Untimed = 0, true
	}
	rec.WireLen = max(p.order.uint32(h[12:]), captured)
	rec.LinkType = p.linkType
	rec.FineClock = p.tickNs == 1
	if !r.need(length) {
		return r.cut("a record", int64(length))
	}
	rec.Data = r.data[r.pos+pcapRecordHeaderBytes : r.pos+length : r.pos+length]
	r.pos += length
	return nil
}
