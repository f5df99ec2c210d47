package flow

import (
	"unsafe"

	"github.com/klauspost/compress/s2"
)

const (
	// chunkLen is the number of connections that are packed together.
	chunkLen = 1 << 7
	// openMax is the number of chunks of a store that are open at first.
	openMax = 1 << 8
	// After watchPackets packets, a store that has unpacked more than one chunk for
	// each unpackEvery packets keeps twice as many open.
	watchPackets = 1 << 16
	unpackEvery  = 1 << 8
)

// store keeps connections by their number. It packs those that no packet came
// for lately: most connections of a large capture have ended, or rest.
type store struct {
	chunks  []chunk
	count   uint32 // of connections
	open    []uint32
	hand    int // goes round in open, and packs what was not touched in a round
	openMax int

	packets, unpacked int // since unpacking was last watched
	spare             []*connections
	buffer            []byte
}

// connections are those of one chunk.
type connections [chunkLen]connection

// bytes returns the first connections as bytes; they have no pointers.
func (c *connections) bytes(count uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c)), uintptr(count)*unsafe.Sizeof(c[0]))
}

// chunk is either open or packed.
type chunk struct {
	open    *connections
	packed  []byte
	touched bool // since the hand came by
}

// add makes room for one more connection and returns its number.
func (s *store) add() uint32 {
	if s.count%chunkLen == 0 {
		s.chunks = append(s.chunks, chunk{open: s.room()})
		s.open = append(s.open, uint32(len(s.chunks)-1))
	}
	s.count++
	return s.count - 1
}

// at returns a connection, which stays there until rest is called.
func (s *store) at(number uint32) *connection {
	c := &s.chunks[number/chunkLen]
	if c.open == nil {
		s.reopen(number / chunkLen)
	}
	c.touched = true
	return &c.open[number%chunkLen]
}

func (s *store) reopen(number uint32) {
	c := &s.chunks[number]
	c.open = s.room()
	unpack(c.packed, c.open)
	c.packed = nil
	s.open = append(s.open, number)
	s.unpacked++
}

// rest packs what is not in use; it is called before each packet.
func (s *store) rest() {
	s.packets++
	if s.packets == watchPackets {
		s.watch()
	}
	for len(s.open) > s.openMax {
		s.turn()
	}
}

// watch opens more chunks if packets come for so many connections in turn that
// the store would unpack one for each packet.
func (s *store) watch() {
	if s.unpacked > watchPackets/unpackEvery {
		s.openMax *= 2
	}
	s.packets, s.unpacked = 0, 0
}

// turn moves the hand on by one chunk.
func (s *store) turn() {
	if s.hand >= len(s.open) {
		s.hand = 0
	}
	number := s.open[s.hand]
	c := &s.chunks[number]
	if c.touched {
		c.touched = false
		s.hand++
		return
	}
	if s.buffer == nil {
		s.buffer = make([]byte, s2.MaxEncodedLen(len(c.open.bytes(chunkLen))))
	}
	used := c.open.bytes(min(chunkLen, s.count-number*chunkLen))
	c.packed = append([]byte(nil), s2.Encode(s.buffer, used)...)
	s.spare = append(s.spare, c.open)
	c.open = nil
	last := len(s.open) - 1
	s.open[s.hand] = s.open[last]
	s.open = s.open[:last]
}

// room returns connections to be overwritten.
func (s *store) room() *connections {
	last := len(s.spare) - 1
	if last < 0 {
		return new(connections)
	}
	room := s.spare[last]
	s.spare = s.spare[:last]
	return room
}

func unpack(packed []byte, into *connections) {
	if _, err := s2.Decode(into.bytes(chunkLen), packed); err != nil {
		panic("flow: a packed chunk cannot be unpacked: " + err.Error())
	}
}

// storeReader reads a store that no longer changes. Several may read one.
type storeReader struct {
	store   *store
	current *connections // of the packed chunk number at-1
	at      uint32
}

func (r *storeReader) read(number uint32) *connection {
	at := number / chunkLen
	c := &r.store.chunks[at]
	if c.open != nil {
		return &c.open[number%chunkLen]
	}
	if r.current == nil {
		r.current = new(connections)
	}
	if r.at != at+1 {
		unpack(c.packed, r.current)
		r.at = at + 1
	}
	return &r.current[number%chunkLen]
}
