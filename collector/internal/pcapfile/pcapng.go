package pcapfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Block types of pcapng.
const (
	sectionHeaderType        = 0x0a0d0d0a
	interfaceDescriptionType = 1
	packetType               = 2 // obsolete, still met in old files
	simplePacketType         = 3
	enhancedPacketType       = 6
)

const (
	// blockFrameBytes is what stands around each block's body: type, length, length.
	blockFrameBytes = 12
	// packetBodyBytes is what stands before the data of a packet block.
	packetBodyBytes = 20
	// interfacesMax bounds the interfaces of one section.
	interfacesMax = 1 << 16
)

// Options of an interface description.
const (
	optionEnd          = 0
	optionTSResolution = 9
	optionTSOffset     = 14
)

// pcapng reads the blocks of a pcapng file.
type pcapng struct {
	order      bigEndian
	interfaces []captureInterface // of the section being read
}

// captureInterface is what an Interface Description Block says.
type captureInterface struct {
	linkType uint32
	snaplen  uint32
	clock    clock
}

// next reads blocks up to and including the next packet.
func (p *pcapng) next(r *Reader, rec *Record) error {
	for {
		if !r.need(blockFrameBytes) {
			return r.endIn("a block header", blockFrameBytes)
		}
		h := r.data[r.pos:][:blockFrameBytes]
		kind := p.order.uint32(h)
		if kind == sectionHeaderType { // the same in both byte orders
			if err := p.beginSection(r, h[8:]); err != nil {
				return err
			}
		}
		length := p.order.uint32(h[4:])
		if length < blockFrameBytes || length%4 != 0 {
			return r.damaged(fmt.Sprintf("a block of type %#x claims a length of %d bytes", kind, length))
		}
		switch kind {
		case interfaceDescriptionType, packetType, simplePacketType, enhancedPacketType:
		default:
			begin := r.offset()
			if !r.skip(int64(length)) {
				return r.cutBlock(begin, kind, length)
			}
			continue
		}
		body, err := p.body(r, kind, length)
		if err != nil {
			return err
		}
		var isPacket bool
		switch kind {
		case interfaceDescriptionType:
			err = p.addInterface(r, body)
		case simplePacketType:
			isPacket, err = true, p.simplePacket(r, body, rec)
		case enhancedPacketType:
			isPacket, err = true, p.packet(r, body, p.order.uint32(body), rec)
		case packetType:
			// The upper half counts packets dropped since the last one.
			isPacket, err = true, p.packet(r, body, uint32(p.order.uint16(body)), rec)
		}
		if err != nil {
			return err
		}
		r.pos += int(length)
		if isPacket {
			return nil
		}
	}
}

// beginSection learns a section's byte order from its byte-order magic.
func (p *pcapng) beginSection(r *Reader, magic []byte) error {
	switch binary.LittleEndian.Uint32(magic) {
	case 0x1a2b3c4d:
		p.order = false
	case 0x4d3c2b1a:
		p.order = true
	default:
		return r.damaged(fmt.Sprintf("a section header has the byte-order magic % x", magic[:4]))
	}
	p.interfaces = p.interfaces[:0]
	return nil
}

// bodyBytesMin is what the body of a block must have at least, by type.
var bodyBytesMin = [...]uint32{
	interfaceDescriptionType: 8,
	packetType:               packetBodyBytes,
	simplePacketType:         4,
	enhancedPacketType:       packetBodyBytes,
}

// body returns the body of the block at hand, whose length has been read.
func (p *pcapng) body(r *Reader, kind, length uint32) ([]byte, error) {
	if length > blockBytesMax {
		return nil, r.damaged(fmt.Sprintf("a block of type %#x claims a length of %d bytes", kind, length))
	}
	if !r.need(int(length)) {
		return nil, r.cutBlock(r.offset(), kind, length)
	}
	block := r.data[r.pos:][:length]
	if again := p.order.uint32(block[length-4:]); again != length {
		return nil, r.damaged(fmt.Sprintf("a block of type %#x gives its length as %d and as %d bytes", kind, length, again))
	}
	if length-blockFrameBytes < bodyBytesMin[kind] {
		return nil, r.damaged(fmt.Sprintf("a block of type %#x is too short: %d bytes", kind, length))
	}
	return block[8 : length-4], nil
}

// addInterface takes an Interface Description Block.
func (p *pcapng) addInterface(r *Reader, body []byte) error {
	if len(p.interfaces) == interfacesMax {
		return r.damaged(fmt.Sprintf("a section describes more than %d interfaces", interfacesMax))
	}
	resolution, offsetSeconds := byte(6), int64(0)
	for options := body[8:]; len(options) >= 4; {
		code, length := p.order.uint16(options), int(p.order.uint16(options[2:]))
		padded := (length + 3) &^ 3
		options = options[4:]
		if code == optionEnd || padded > len(options) {
			break
		}
		switch {
		case code == optionTSResolution && length == 1:
			resolution = options[0]
		case code == optionTSOffset && length == 8:
			offsetSeconds = int64(p.order.uint64(options))
		}
		options = options[padded:]
	}
	p.interfaces = append(p.interfaces, captureInterface{
		linkType: uint32(p.order.uint16(body)),
		snaplen:  p.order.uint32(body[4:]),
		clock:    newClock(resolution, offsetSeconds),
	})
	return nil
}

// packet takes an Enhanced Packet Block or an obsolete Packet Block: they
// differ in the interface field alone.
func (p *pcapng) packet(r *Reader, body []byte, id uint32, rec *Record) error {
	if uint64(id) >= uint64(len(p.interfaces)) {
		return r.damaged(fmt.Sprintf("a packet names interface %d of %d", id, len(p.interfaces)))
	}
	on := &p.interfaces[id]
	captured := p.order.uint32(body[12:])
	if uint64(captured) > uint64(len(body)-packetBodyBytes) {
		return r.damaged(fmt.Sprintf("a packet claims %d captured bytes in a block of %d", captured, len(body)+blockFrameBytes))
	}
	ticks := uint64(p.order.uint32(body[4:]))<<32 | uint64(p.order.uint32(body[8:]))
	ns, ok := on.clock.unixNs(ticks)
	end := packetBodyBytes + captured
	rec.TimeNs = ns
	rec.Data = body[packetBodyBytes:end:end]
	rec.WireLen = max(p.order.uint32(body[16:]), captured)
	rec.LinkType = on.linkType
	rec.FineClock = ok && on.clock.fine
	rec.Untimed = !ok
	return nil
}

// simplePacket takes a Simple Packet Block: always of the first interface, and
// without a time.
func (p *pcapng) simplePacket(r *Reader, body []byte, rec *Record) error {
	if len(p.interfaces) == 0 {
		return r.damaged("a packet stands before any interface")
	}
	on := &p.interfaces[0]
	onWire := p.order.uint32(body)
	captured := min(uint64(onWire), uint64(len(body)-4))
	if on.snaplen != 0 {
		captured = min(captured, uint64(on.snaplen))
	}
	end := 4 + captured
	*rec = Record{Data: body[4:end:end], WireLen: onWire, LinkType: on.linkType, Untimed: true}
	return nil
}

// secondsMax is the last second whose nanoseconds fit 64 bits, in the year 2262.
const secondsMax = math.MaxInt64 / 1_000_000_000

// clock turns an interface's ticks into nanoseconds.
type clock struct {
	multiply uint64 // nanoseconds for each tick; 0 if divide or shift apply
	divide   uint64 // ticks for each nanosecond
	shift    uint   // a tick is 2^-shift seconds, if multiply and divide are 0
	offsetNs int64
	fine     bool // finer than a microsecond
	broken   bool // so far off that no time of this era comes of it
}

// newClock reads the options if_tsresol and if_tsoffset.
func newClock(resolution byte, offsetSeconds int64) clock {
	if offsetSeconds < -secondsMax || offsetSeconds > secondsMax {
		return clock{broken: true}
	}
	c := clock{offsetNs: offsetSeconds * 1e9}
	exponent := uint(resolution & 0x7f)
	// 2^-6 s is the finest binary tick that is a whole number of microseconds, as
	// 10^-6 s is the finest decimal one.
	c.fine = exponent > 6
	switch {
	case resolution&0x80 != 0:
		c.shift = exponent
	case exponent <= 9:
		c.multiply = powerOf10(9 - exponent)
	default:
		c.divide = powerOf10(min(exponent-9, 19)) // beyond 19 every uint64 of ticks is under 1 ns
	}
	return c
}

func powerOf10(exponent uint) uint64 {
	power := uint64(1)
	for range exponent {
		power *= 10
	}
	return power
}

// unixNs returns the time of a tick, rounded down; 0 and false if it lies
// beyond what 64 bits can hold.
func (c *clock) unixNs(ticks uint64) (int64, bool) {
	if c.broken {
		return 0, false
	}
	var high, low uint64
	switch {
	case c.multiply != 0:
		high, low = bits.Mul64(ticks, c.multiply)
	case c.divide != 0:
		low = ticks / c.divide
	default:
		high, low = bits.Mul64(ticks, 1e9)
		if c.shift < 64 {
			low = low>>c.shift | high<<(64-c.shift) // a shift by 64 gives 0
			high >>= c.shift
		} else {
			low, high = high>>(c.shift-64), 0
		}
	}
	ns := int64(low) + c.offsetNs
	// Past the upper bound the sum of two positive numbers turns negative.
	if high != 0 || low > math.MaxInt64 || (c.offsetNs > 0 && ns < 0) {
		return 0, false
	}
	return ns, true
}
