package flow

import (
	"math"
	"net/netip"
)

// order is where the flows stand, in the order of their first packets.
type order struct {
	flows []place
	ids   [][]uint32 // of each shard's connections
}

// place is where a connection stands.
type place struct{ shard, index uint32 }

// newOrder merges the shards' connections, which are in order each for itself.
func newOrder(shards []*shard) order {
	o := order{ids: make([][]uint32, len(shards))}
	total := 0
	for i, s := range shards {
		o.ids[i] = make([]uint32, 0, s.tracker.count)
		total += int(s.tracker.count)
	}
	o.flows = make([]place, 0, total)
	readers := readersOf(shards)
	for range total {
		first, firstPacket := 0, uint64(math.MaxUint64)
		for i, s := range shards {
			if next := uint32(len(o.ids[i])); next < s.tracker.count {
				if number := readers[i].read(next).firstPacket; number < firstPacket {
					first, firstPacket = i, number
				}
			}
		}
		o.flows = append(o.flows, place{uint32(first), uint32(len(o.ids[first]))})
		o.ids[first] = append(o.ids[first], uint32(len(o.flows)))
	}
	return o
}

// Len returns the number of flows.
func (r *Result) Len() int { return len(r.order.flows) }

// Reader reads the flows of a result. Several goroutines may read at once, each
// by a reader of its own.
type Reader struct {
	result *Result
	stores []storeReader // of each shard
}

// Reader returns a reader.
func (r *Result) Reader() *Reader { return &Reader{r, readersOf(r.shards)} }

func readersOf(shards []*shard) []storeReader {
	readers := make([]storeReader, len(shards))
	for i, s := range shards {
		readers[i].store = &s.tracker.store
	}
	return readers
}

// Read fills f with flow number i, from 0, in the order of the flows' first
// packets, which is the fastest order. It keeps f's slices if they are large
// enough.
func (r *Reader) Read(i int, f *Flow) {
	at := r.result.order.flows[i]
	c := r.stores[at.shard].read(at.index)
	r.result.shards[at.shard].tracker.record(c, f, r.result.Summary.LastNs)
	f.ID = uint64(i + 1)
	if c.former != 0 {
		f.ReusedPortOf = uint64(r.result.order.ids[at.shard][c.former-1])
	}
}

// record fills f from a connection of a capture that ends at endNs.
func (t *tracker) record(c *connection, f *Flow, endNs int64) {
	client, server := &c.sides[Client], &c.sides[Server]
	owner, known := c.timeWaitOwner(endNs)
	bothFINs := client.marks.has(hasFIN) && server.marks.has(hasFIN)
	*f = Flow{
		Client:         client.record(),
		Server:         server.record(),
		ClientInferred: c.marks.has(midStream),

		FirstPacket: c.firstPacket,
		FirstNs:     c.firstNs,
		LastNs:      c.lastNs,
		FineClock:   c.marks.has(fineClock),

		SYNNs:            t.times.appendTo(f.SYNNs[:0], &c.syn),
		SYNs:             c.syn.count,
		SYNACKNs:         t.times.appendTo(f.SYNACKNs[:0], &c.synACK),
		SYNACKs:          c.synACK.count,
		Established:      c.marks.has(established),
		HandshakeACK:     Instant{c.handshakeACKNs, c.marks.has(handshakeSeen)},
		SimultaneousOpen: c.marks.has(simultaneousOpen),

		ClientHello: Instant{c.tls.clientHelloNs, c.tls.step >= tlsAsked},
		ServerHello: Instant{c.tls.serverHelloNs, c.tls.step >= tlsAnswered},
		ClientReply: Instant{c.tls.clientReplyNs, c.tls.step >= tlsReplied},
		TLSEnd:      Instant{c.tls.endNs, c.tls.step >= tlsFinished},

		FirstFINBy: c.firstFINBy,
		FirstRSTBy: c.firstRSTBy,
		FirstRST:   Instant{c.firstRSTNs, c.firstRSTBy != Nobody},
		ClosedBy:   c.closedBy,
		CloseKind:  c.closeKind,
		SimultaneousClose: bothFINs &&
			!server.finCoveredBy(client.finACK) && !client.finCoveredBy(server.finACK),
		TimeWaitOwner: owner,
		TimeWaitKnown: known,

		TruncatedEnd:  c.marks.has(established) && !bothFINs && c.firstRSTBy == Nobody,
		StrayPackets:  c.strayPackets,
		SequenceExact: !(client.marks | server.marks).has(inexact),
	}
}

func (s *side) record() End {
	return End{
		Address:         netip.AddrPortFrom(s.address.Addr(), s.port),
		ISN:             s.isn,
		ISNKnown:        s.marks.has(hasISN),
		Packets:         s.packets,
		PayloadBytes:    s.payloadBytes,
		UniqueBytes:     s.uniqueBytes,
		MissingBytes:    s.missingBytes,
		Retransmissions: s.retransmissions,
		OutOfOrder:      s.outOfOrder,
		DuplicateACKs:   s.duplicateACKs,
		RSTs:            s.rsts,
		FirstData:       Instant{s.firstDataNs, s.marks.has(hasData)},
		LastData:        Instant{s.lastDataNs, s.marks.has(hasData)},
		FIN:             Instant{s.finNs, s.marks.has(hasFIN)},
	}
}
