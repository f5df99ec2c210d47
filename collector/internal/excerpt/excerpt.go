// Package excerpt finds the packets of chosen connections in captures.
package excerpt

import (
	"connlab/collector/internal/flow"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
	"connlab/collector/internal/tlsrecord"
)

// Packet is a TCP segment of a chosen connection.
type Packet struct {
	Connection   int64  // ID of the chosen connection
	Number       uint64 // in the captures, from 1
	TimeNs       int64
	FineClock    bool // the capture's clock ticks finer than a microsecond
	From         flow.Side
	Flags        packet.Flags
	Seq, Ack     int64 // where they stand in what the sender, and the other side, sends; see sequence
	RawSeq       uint32
	RawAck       uint32
	PayloadBytes uint32 // on the wire
	Window       uint16 // as it stands in the header, unscaled
	TLS          string // what record begins its data; "" if none is seen
	CutBytes     uint32 // of the packet, beyond what the capture kept
}

// Read calls visit for each packet of each chosen connection, in the order of
// the captures. The packet is valid until visit returns: Read keeps only a few
// numbers for each connection. An error of visit ends the reading.
func Read(files []*pcapfile.File, chosen []Connection, visit func(*Packet) error) (*flow.Summary, error) {
	follow := map[sockets][]follower{}
	for i := range chosen {
		f := &followed{Connection: chosen[i]}
		out, back := between(f.Client, f.Server), between(f.Server, f.Client)
		follow[out] = append(follow[out], follower{f, flow.Client})
		if back != out {
			follow[back] = append(follow[back], follower{f, flow.Server})
		}
	}
	var p Packet
	return flow.Segments(files, func(number uint64, rec *pcapfile.Record, seg *packet.Segment) error {
		for _, each := range follow[socketsOf(seg)] {
			if us := flow.Microseconds(rec.TimeNs); us < each.FirstUs || us > each.LastUs {
				continue
			}
			p = each.packet(each.side, seg)
			p.Number, p.TimeNs, p.FineClock = number, rec.TimeNs, rec.FineClock
			if start := rec.WireLen - min(rec.WireLen, seg.Payload); start < uint32(len(rec.Data)) {
				p.TLS = tlsrecord.Describe(rec.Data[start:])
			}
			p.CutBytes = rec.WireLen - uint32(len(rec.Data))
			if err := visit(&p); err != nil {
				return err
			}
		}
		return nil
	})
}

// followed is a chosen connection, and how far its sides have come.
type followed struct {
	Connection
	sent [2]sequence // by Client and Server
}

// follower is one direction of a connection: side is the sender.
type follower struct {
	*followed
	side flow.Side
}

func (f *followed) packet(from flow.Side, seg *packet.Segment) Packet {
	p := Packet{
		Connection:   f.ID,
		From:         from,
		Flags:        seg.Flags,
		Seq:          f.sent[from].of(seg.Seq, seg.Flags.Has(packet.SYN)),
		RawSeq:       seg.Seq,
		PayloadBytes: seg.Payload,
		Window:       seg.Window,
	}
	if seg.Flags.Has(packet.ACK) {
		p.Ack, p.RawAck = f.sent[1-from].of(seg.Ack, false), seg.Ack
	}
	return p
}
