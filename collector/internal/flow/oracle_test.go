package flow_test

import (
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"connlab/collector/internal/flow"
)

// This file is a second flow reducer: slow, over gopacket's readers and
// decoders, and with other algorithms. It keeps all segments of a connection,
// goes over them again for each question, and keeps sequence space as a set of
// single bytes. The tests compare the fast one with it, field by field.

// seen is a TCP segment as gopacket decodes it.
type seen struct {
	number             uint64
	ns                 int64
	fine               bool
	from, to           netip.AddrPort
	seq, ack           uint32
	syn, fin, rst, acK bool
	window             uint16
	payload            int
	start              string // of its data, six bytes at most
}

func (s seen) String() string {
	flags := ""
	for _, f := range []struct {
		set  bool
		name string
	}{{s.syn, "S"}, {s.fin, "F"}, {s.rst, "R"}, {s.acK, "A"}} {
		if f.set {
			flags += f.name
		}
	}
	return fmt.Sprintf("%4d %v > %v %-3s seq %d ack %d len %d", s.number, s.from, s.to, flags, s.seq, s.ack, s.payload)
}

// readSegments reads a capture with gopacket.
func readSegments(t testing.TB, path string, fine bool) []seen {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var source gopacket.PacketDataSource
	var link layers.LinkType
	if r, err := pcapgo.NewReader(file); err == nil {
		source, link = r, r.LinkType()
	} else {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		r, err := pcapgo.NewNgReader(file, pcapgo.NgReaderOptions{SkipUnknownVersion: true})
		if err != nil {
			t.Fatal(err)
		}
		source, link = r, r.LinkType()
	}
	var all []seen
	for number := uint64(1); ; number++ {
		data, info, err := source.ReadPacketData()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, link, gopacket.Default)
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			continue
		}
		s := seen{
			number: number, ns: info.Timestamp.UnixNano(), fine: fine,
			seq: tcp.Seq, ack: tcp.Ack, syn: tcp.SYN, fin: tcp.FIN, rst: tcp.RST, acK: tcp.ACK, window: tcp.Window,
		}
		s.start = string(tcp.Payload[:min(len(tcp.Payload), 6)])
		var source, destination netip.Addr
		if ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4); ok {
			source, _ = netip.AddrFromSlice(ip.SrcIP.To4())
			destination, _ = netip.AddrFromSlice(ip.DstIP.To4())
			s.payload = int(ip.Length) - 4*int(ip.IHL) - 4*int(tcp.DataOffset)
		} else {
			ip := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
			source, _ = netip.AddrFromSlice(ip.SrcIP)
			destination, _ = netip.AddrFromSlice(ip.DstIP)
			headers := 0
			for _, layer := range p.Layers() {
				switch layer.LayerType() {
				case layers.LayerTypeIPv6HopByHop, layers.LayerTypeIPv6Routing, layers.LayerTypeIPv6Destination, layers.LayerTypeIPv6Fragment:
					headers += len(layer.LayerContents())
				}
			}
			s.payload = int(ip.Length) - headers - 4*int(tcp.DataOffset)
		}
		s.from = netip.AddrPortFrom(source, uint16(tcp.SrcPort))
		s.to = netip.AddrPortFrom(destination, uint16(tcp.DstPort))
		all = append(all, s)
	}
}

// conversation is a connection as the oracle keeps it.
type conversation struct {
	ends     [2]netip.AddrPort
	inferred bool
	former   *conversation
	id       uint64
	segments []seen // all of them
	strays   int
	far      bool   // a stray, other than a SYN or a RST, is far from its side's numbers
	fitting  []seen // those that are not strays
}

func (c *conversation) side(s seen) int {
	if s.from == c.ends[0] {
		return 0
	}
	return 1
}

// isSYN: a RST opens nothing.
func (s seen) isSYN() bool { return s.syn && !s.rst }

// upTo returns the connection as it was after its first n segments.
func (c *conversation) upTo(n int) *conversation {
	return &conversation{ends: c.ends, inferred: c.inferred, fitting: c.fitting[:n]}
}

// isn returns the initial sequence number of a side as the segments up to
// now give it.
func (c *conversation) isn(side int) (isn uint32, known bool) {
	for i, s := range c.fitting {
		switch {
		case s.isSYN() && c.side(s) == side:
			isn, known = s.seq, true
		case s.isSYN() && s.acK && side == 0 && i == 0:
			isn, known = s.ack-1, true
		}
	}
	return isn, known
}

// highest returns what follows the highest sequence number that a side used.
func (c *conversation) highest(side int) (next uint32, known bool) {
	wentOn := false
	for _, s := range c.fitting {
		if s.rst || c.side(s) != side {
			continue
		}
		end := s.seq + uint32(s.payload)
		if s.syn || s.fin {
			end++
		}
		if !known || int32(end-next) > 0 || s.isSYN() && !wentOn {
			next, known = end, true
		}
		wentOn = wentOn || !s.isSYN()
	}
	if isn, ok := c.isn(side); ok && (!known || int32(isn+1-next) > 0) {
		return isn + 1, true
	}
	return next, known
}

// unanswered says whether nothing but the client's SYNs and RSTs came.
func (c *conversation) unanswered() bool {
	first := c.fitting[0]
	if !first.isSYN() || first.acK {
		return false
	}
	return !slices.ContainsFunc(c.fitting, func(s seen) bool {
		return !s.rst && (c.side(s) == 1 || !s.syn)
	})
}

// establishedBy says whether the handshake is complete before segment n.
func (c *conversation) establishedBy(n int) bool {
	if n == 0 {
		return false
	}
	_, established := c.upTo(n).handshake()
	return established
}

// handshake returns the index of the segment that shows the handshake complete.
func (c *conversation) handshake() (at int, established bool) {
	acked := [2]bool{}
	simultaneous := false
	for i, s := range c.fitting {
		from := c.side(s)
		if s.isSYN() && (from == 0) == s.acK {
			simultaneous = true
		}
		if !s.acK {
			continue
		}
		if c.inferred {
			if !s.rst {
				return -1, true
			}
			continue
		}
		isn, known := uint32(0), false
		if i > 0 {
			isn, known = c.upTo(i).isn(1 - from)
		} else if s.isSYN() {
			isn, known = s.ack-1, true
		}
		switch {
		case known:
			if int32(s.ack-isn-1) >= 0 {
				acked[1-from] = true
			}
		case from == 0 && !s.isSYN() && !s.rst:
			acked[1] = true
		}
		if acked[1] && (acked[0] || !simultaneous) {
			return i, true
		}
	}
	return -1, false
}

// takes says whether a segment belongs to the connection, given that it has the
// four-tuple.
func (c *conversation) ownsSYN(s seen) bool {
	from := c.side(s)
	if isn, known := c.isn(from); known && isn == s.seq {
		return true
	}
	return s.acK && from == 1 && c.acknowledges(0, s.ack)
}

// acknowledges says whether ack covers a side's SYN and nothing that it has not
// sent.
func (c *conversation) acknowledges(side int, ack uint32) bool {
	isn, known := c.isn(side)
	next, _ := c.highest(side)
	return known && int32(ack-isn-1) >= 0 && int32(next-ack) >= 0
}

// assemble sorts segments into connections.
func assemble(segments []seen) []*conversation {
	type tuple [2]netip.AddrPort
	latest := map[tuple]*conversation{}
	var all []*conversation
	for _, s := range segments {
		key := tuple{s.from, s.to}
		if s.to.Compare(s.from) < 0 {
			key = tuple{s.to, s.from}
		}
		c := latest[key]
		switch {
		case c == nil:
		case s.isSYN():
			switch {
			case c.ownsSYN(s), c.unanswered() && c.side(s) == 1 && !s.acK:
				c.take(s)
				continue
			case c.former != nil && c.former.ownsSYN(s):
				c.former.take(s)
				continue
			case c.unanswered() && s.acK:
				c.stray(s)
				continue
			}
		case !c.unanswered() || c.answers(s):
			c.take(s)
			continue
		case c.former != nil && c.former.mayHaveSent(s):
			c.former.take(s)
			continue
		default:
			c.stray(s)
			continue
		}
		next := &conversation{ends: [2]netip.AddrPort{s.from, s.to}, former: c, id: uint64(len(all) + 1)}
		switch {
		case s.isSYN() && s.acK:
			slices.Reverse(next.ends[:])
		case !s.isSYN():
			next.inferred = true
			if s.from.Port() < s.to.Port() {
				slices.Reverse(next.ends[:])
			}
		}
		next.take(s)
		latest[key] = next
		all = append(all, next)
	}
	return all
}

func (c *conversation) answers(s seen) bool {
	if c.side(s) == 1 {
		return s.acK && c.acknowledges(0, s.ack)
	}
	isn, _ := c.isn(0)
	return s.seq == isn+1 || !s.rst && s.seq-isn-1 < 1<<30
}

func (c *conversation) stray(s seen) {
	c.segments = append(c.segments, s)
	c.strays++
}

// take takes a segment in, if its sequence number can be one of the connection.
func (c *conversation) take(s seen) {
	if len(c.fitting) > 0 && !c.fits(s) {
		c.stray(s)
		c.far = c.far || !s.rst && !s.isSYN()
		return
	}
	c.segments = append(c.segments, s)
	c.fitting = append(c.fitting, s)
}

func (c *conversation) fits(s seen) bool {
	side := c.side(s)
	near := c.isNear(side, s.seq)
	if s.rst {
		return near || s.acK && !c.establishedBy(len(c.fitting)) && c.acknowledges(1-side, s.ack)
	}
	if !s.isSYN() {
		return near
	}
	wentOn := c.wentOn(side)
	if isn, known := c.isn(side); known && isn != s.seq {
		return !wentOn && !c.establishedBy(len(c.fitting))
	}
	return near || !wentOn
}

// isNear says whether a number is within TCP's largest window of those of a side.
func (c *conversation) isNear(side int, number uint32) bool {
	next, known := c.highest(side)
	distance := int64(int32(number - next))
	return !known || distance <= 1<<30 && distance >= -1<<30
}

// mayHaveSent says whether a segment that came after another connection began can
// be one of this connection.
func (c *conversation) mayHaveSent(s seen) bool {
	if c.unanswered() {
		return c.answers(s)
	}
	side := c.side(s)
	for _, fin := range c.fitting {
		if fin.fin && !fin.syn && !fin.rst && c.side(fin) == side {
			if last := fin.seq + uint32(fin.payload) + 1; int32(s.seq+uint32(s.payload)-last) > 0 {
				return false
			}
			break // a later one repeats it
		}
	}
	return c.isNear(side, s.seq) && (!s.acK || c.isNear(1-side, s.ack))
}

// wentOn says whether a side sent more than SYNs and RSTs.
func (c *conversation) wentOn(side int) bool {
	return slices.ContainsFunc(c.fitting, func(s seen) bool { return !s.rst && !s.syn && c.side(s) == side })
}

// flow answers all questions about a connection.
func (c *conversation) flow(endNs int64) flow.Flow {
	first, last := c.segments[0], c.segments[len(c.segments)-1]
	f := flow.Flow{
		ID: c.id, ClientInferred: c.inferred,
		FirstPacket: first.number, FirstNs: first.ns, LastNs: last.ns, FineClock: first.fine,
		FirstFINBy: flow.Nobody, FirstRSTBy: flow.Nobody, ClosedBy: flow.Nobody,
		StrayPackets: uint32(c.strays),
	}
	if c.former != nil {
		f.ReusedPortOf = c.former.id
	}
	f.SequenceExact = !c.far
	fresh := map[uint64]bool{}
	for side, end := range []*flow.End{&f.Client, &f.Server} {
		var exact bool
		*end, exact = c.end(side, fresh)
		f.SequenceExact = f.SequenceExact && exact
	}
	c.secure(&f, fresh)
	at, established := c.handshake()
	f.Established = established
	for _, s := range c.fitting {
		side := flow.Side(c.side(s))
		if s.isSYN() {
			switch {
			case side == flow.Client && !s.acK:
				f.SYNNs = append(f.SYNNs, s.ns)
			case side == flow.Server && s.acK:
				f.SYNACKNs = append(f.SYNACKNs, s.ns)
			default:
				f.SimultaneousOpen = true
			}
		}
		if s.rst && f.FirstRSTBy == flow.Nobody {
			f.FirstRSTBy, f.FirstRST = side, flow.Instant{Ns: s.ns, Known: true}
		}
		if s.fin && !s.syn && !s.rst && f.FirstFINBy == flow.Nobody {
			f.FirstFINBy = side
		}
		if f.CloseKind == flow.NotClosed {
			switch {
			case s.rst:
				f.ClosedBy, f.CloseKind = side, flow.ClosedByRST
			case s.fin && !s.syn:
				f.ClosedBy, f.CloseKind = side, flow.ClosedByFIN
			}
		}
	}
	f.SYNs, f.SYNACKs = uint32(len(f.SYNNs)), uint32(len(f.SYNACKNs))
	if at >= 0 {
		s := c.fitting[at]
		var isn, next uint32
		if at > 0 {
			isn, _ = c.upTo(at).isn(c.side(s))
			next, _ = c.upTo(at).highest(c.side(s))
		}
		if !s.rst && (!s.fin || s.syn) && (c.side(s) == 0 || simultaneousBefore(c, at)) &&
			(s.isSYN() || s.seq == isn+1 || s.seq == next) {
			f.HandshakeACK = flow.Instant{Ns: s.ns, Known: true}
		}
	}
	c.close(&f, endNs)
	return f
}

func simultaneousBefore(c *conversation, at int) bool {
	return slices.ContainsFunc(c.fitting[:at+1], func(s seen) bool {
		return s.isSYN() && (c.side(s) == 0) == s.acK
	})
}

// secure fills in when the handshake of TLS went on, by the packets that are fresh: with new data.
func (c *conversation) secure(f *flow.Flow, fresh map[uint64]bool) {
	type message struct {
		side int
		what string
		at   flow.Instant
	}
	var all []message
	for _, s := range c.fitting {
		if what := recordOf(s.start); what != "" && fresh[s.number] {
			all = append(all, message{c.side(s), what, flow.Instant{Ns: s.ns, Known: true}})
		}
	}
	// next is where a side's next message is that is one of those, or none of them with a leading "not"; len(all) if none is.
	next := func(from, side int, what ...string) int {
		for i := from; i < len(all); i++ {
			if all[i].side == side && slices.Contains(what, all[i].what) != slices.Contains(what, "not") {
				return i
			}
		}
		return len(all)
	}
	hello := next(0, 0, "ClientHello")
	answer := next(hello, 1, "ServerHello")
	if hello < len(all) {
		f.ClientHello = all[hello].at
	}
	if answer < len(all) {
		f.ServerHello = all[answer].at
	}
	for answer < len(all) {
		reply := next(answer, 0, "not", "ClientHello", "alert")
		last := next(reply, 1, "not")
		for ; last < len(all) && all[last].what == "alert"; last = next(last+1, 1, "not") {
			if all[reply].what != "keys" {
				all[reply].what = "keys" // it did not end the handshake
			}
		}
		switch {
		case reply == len(all):
			return
		case last < len(all) && all[last].what == "ServerHello":
			answer = last
			continue
		case all[reply].what != "keys":
			f.TLSEnd = all[reply].at
		case last < len(all):
			f.TLSEnd = all[last].at
		}
		f.ClientReply = all[reply].at
		return
	}
}

// recordOf names what begins a segment's data, as far as a handshake of TLS has to do with it.
func recordOf(start string) string {
	if len(start) < 5 || start[1] != 3 || start[2] > 4 {
		return ""
	}
	length := int(start[3])<<8 + int(start[4])
	if length == 0 || length > 16640 {
		return ""
	}
	switch {
	case start[0] == 20 || start[0] == 23:
		return "other"
	case start[0] == 21 && length == 2:
		return "alert"
	case start[0] == 21:
		return "other"
	case start[0] != 22:
		return ""
	}
	if len(start) == 6 {
		switch start[5] {
		case 1:
			return "ClientHello"
		case 2:
			return "ServerHello"
		case 11, 16:
			return "keys"
		}
	}
	return "other"
}

// close fills in what the FINs and RSTs decide.
func (c *conversation) close(f *flow.Flow, endNs int64) {
	var fins [2]*seen
	acked := [2]bool{}
	done := false
	for i, s := range c.fitting {
		from := c.side(s)
		if s.rst {
			if !done {
				f.TimeWaitOwner, f.TimeWaitKnown = flow.Nobody, true
				break
			}
			continue
		}
		if s.fin && !s.syn && fins[from] == nil {
			fins[from] = &c.fitting[i]
			acked[from] = slices.ContainsFunc(c.fitting[:i], func(e seen) bool {
				return c.side(e) != from && !e.rst && e.acK && coversFIN(e.ack, s)
			})
		}
		if peer := fins[1-from]; peer != nil && s.acK && coversFIN(s.ack, *peer) {
			acked[1-from] = true
		}
		done = acked[0] && acked[1]
	}
	for side := range fins {
		fins[side] = nil
		for i, s := range c.fitting {
			if s.fin && !s.syn && !s.rst && c.side(s) == side {
				fins[side] = &c.fitting[i]
				break
			}
		}
	}
	bothFINs := fins[0] != nil && fins[1] != nil
	f.TruncatedEnd = f.Established && !bothFINs && !f.FirstRST.Known
	var sentBeforeReceived [2]bool
	if bothFINs {
		sentBeforeReceived = [2]bool{!coversFIN(fins[0].ack, *fins[1]), !coversFIN(fins[1].ack, *fins[0])}
	}
	f.SimultaneousClose = sentBeforeReceived[0] && sentBeforeReceived[1]
	switch {
	case !f.Established:
		f.TimeWaitOwner, f.TimeWaitKnown = flow.Nobody, true
	case f.TimeWaitKnown: // aborted
	case !done && (!bothFINs || f.LastNs != max(fins[0].ns, fins[1].ns) || endNs-f.LastNs < 3e9):
		f.TimeWaitOwner = flow.Nobody
	case f.SimultaneousClose:
		f.TimeWaitOwner, f.TimeWaitKnown = flow.Both, true
	case sentBeforeReceived[0]:
		f.TimeWaitOwner, f.TimeWaitKnown = flow.Client, true
	case sentBeforeReceived[1]:
		f.TimeWaitOwner, f.TimeWaitKnown = flow.Server, true
	default:
		f.TimeWaitOwner = flow.Nobody
	}
}

func coversFIN(ack uint32, fin seen) bool {
	return int32(ack-(fin.seq+uint32(fin.payload)+1)) >= 0
}

// end answers the questions about one side, and says whether its sequence
// numbers are known. It adds the numbers of the packets with new data to fresh.
func (c *conversation) end(side int, fresh map[uint64]bool) (e flow.End, exact bool) {
	e, exact = flow.End{Address: c.ends[side]}, true
	e.ISN, e.ISNKnown = c.isn(side)
	for _, s := range c.segments {
		if c.side(s) == side {
			e.Packets++
		}
	}

	const (
		passed = iota + 1
		data
		theFIN
	)
	bytes := map[int64]int{} // what is known of each place in the sequence space
	var begun bool
	var next int64 // unwrapped; equal to the sequence number modulo 2^32
	var base int64 // the lowest data seen
	var acks []seen
	for i, s := range c.fitting {
		if c.side(s) != side {
			continue
		}
		if s.rst {
			e.RSTs++
			continue
		}
		if s.isSYN() {
			isn, known := c.upTo(i).isn(side)
			if !begun || (!known || isn != s.seq) && !c.upTo(i).wentOn(side) {
				next, begun = int64(s.seq)+1, true
				base = next
			}
		} else if !begun {
			next, begun = int64(s.seq), true
			if isn, known := c.upTo(i).isn(side); i > 0 && known {
				next = int64(isn) + 1 // by a SYN-ACK whose SYN the capture lacks
			}
			base = next
		}
		floor := int64(math.MinInt64) // no data can lie below it
		if isn, known := c.upTo(i + 1).isn(side); known {
			floor = next + int64(int32(isn+1-uint32(next)))
		}
		if floor != math.MinInt64 {
			for b := floor; b < base; b++ {
				bytes[b] = passed
			}
			base = min(base, floor)
		}
		start := s.seq
		if s.syn {
			start++
		}
		at := next + int64(int32(start-uint32(next)))
		for b := next; b < at; b++ {
			bytes[b] = passed
		}
		repeated, filled := false, false
		for b := at; b < at+int64(s.payload); b++ {
			switch {
			case bytes[b] > passed || bytes[b] == 0 && b < floor:
				repeated = true
			case b < next:
				filled = true
			}
		}
		if s.payload > 0 {
			isProbe := at == base-1 && s.payload == 1
			exact = exact && (floor == math.MinInt64 || at >= base || isProbe)
			for b := at; b < at+int64(s.payload); b++ {
				if bytes[b] == passed || bytes[b] == 0 && b >= floor {
					bytes[b] = data
				}
			}
			for b := max(at+int64(s.payload), floor); b < base; b++ {
				bytes[b] = passed
			}
			base = min(base, max(at, floor))
			if !e.FirstData.Known {
				e.FirstData = flow.Instant{Ns: s.ns, Known: true}
			}
			e.LastData = flow.Instant{Ns: s.ns, Known: true}
			e.PayloadBytes += uint64(s.payload)
		}
		if repeated {
			e.Retransmissions++
		}
		if filled {
			e.OutOfOrder++
		}
		if s.payload > 0 && (filled || at+int64(s.payload) > next) {
			fresh[s.number] = true
		}
		next = max(next, at+int64(s.payload))
		if s.fin && !s.syn {
			if next == at+int64(s.payload) {
				bytes[next] = theFIN
				next++
			}
			if !e.FIN.Known {
				e.FIN = flow.Instant{Ns: s.ns, Known: true}
			}
		}
		if s.acK {
			if isDuplicateACK(s, acks, c.upTo(i), 1-side) {
				e.DuplicateACKs++
			}
			acks = append(acks, s)
		}
	}
	for _, place := range bytes {
		switch place {
		case data:
			e.UniqueBytes++
		case passed:
			e.MissingBytes++
		}
	}
	return e, exact
}

// isDuplicateACK follows the definition of RFC 5681, section 2.
func isDuplicateACK(s seen, acks []seen, before *conversation, peer int) bool {
	if s.payload > 0 || s.syn || s.fin || len(acks) == 0 {
		return false
	}
	greatest := acks[0].ack
	for _, a := range acks {
		if int32(a.ack-greatest) > 0 {
			greatest = a.ack
		}
	}
	next, known := before.highest(peer)
	return s.ack == greatest && s.window == acks[len(acks)-1].window && known && int32(next-s.ack) > 0
}

// compareWithOracle compares the flows of a capture with the oracle's; fine says
// whether the capture's clock is finer than a microsecond.
func compareWithOracle(t testing.TB, what, path string, fine bool) {
	t.Helper()
	compareWithConversations(t, what, path, assemble(readSegments(t, path, fine)))
}

func compareWithConversations(t testing.TB, what, path string, conversations []*conversation) {
	t.Helper()
	got, summary := reduceFile(t, path)
	if len(got) != len(conversations) {
		t.Errorf("%s: %d flows, want %d", what, len(got), len(conversations))
	}
	for i, c := range conversations[:min(len(got), len(conversations))] {
		if got[i].FirstPacket != c.segments[0].number {
			t.Errorf("%s: flow %d begins with packet %d, want %d", what, i+1, got[i].FirstPacket, c.segments[0].number)
			return
		}
		if !compare(t, fmt.Sprintf("%s: flow %d", what, i+1), got[i], c.flow(summary.LastNs)) {
			for _, s := range c.segments {
				t.Log(s)
			}
		}
	}
}
