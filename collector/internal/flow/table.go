package flow

import (
	"math/bits"
	"math/rand/v2"

	"connlab/collector/internal/packet"
)

// hasher hashes four-tuples so that both directions of a connection get the
// same value. It is seeded: nobody can send packets that all collide.
type hasher struct{ seed1, seed2 uint64 }

func newHasher() hasher { return hasher{rand.Uint64(), rand.Uint64()} }

func (h *hasher) hash(seg *packet.Segment) uint64 {
	sum := h.end(seg.Source, seg.SourcePort) + h.end(seg.Destination, seg.DestinationPort)
	return fold(sum^h.seed2, 0x9e3779b97f4a7c15)
}

func (h *hasher) end(address packet.Address, port uint16) uint64 {
	return fold(address.Low^h.seed1, (address.High^h.seed2)+uint64(port)*0xd6e8feb86659fd93)
}

// fold mixes two numbers: it multiplies them and keeps both halves of the product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// index finds a connection by its four-tuple: open addressing with linear
// probing, at most three quarters full.
type index struct {
	slots []slot
	used  int
}

// slot is free if flow is 0.
type slot struct {
	high, low uint32 // halves of the hash
	flow      uint32 // plus 1
}

func (s *slot) hash() uint64 { return uint64(s.high)<<32 | uint64(s.low) }

const slotsMin = 1 << 6

// grow makes room for one more slot.
func (x *index) grow() {
	if x.used*4 < len(x.slots)*3 {
		return
	}
	old := x.slots
	x.slots = make([]slot, max(slotsMin, 2*len(old)))
	for _, s := range old {
		if s.flow != 0 {
			x.slots[x.free(s.low)] = s
		}
	}
}

// free returns the free slot in which a hash belongs, by its lower half.
func (x *index) free(low uint32) uint32 {
	mask := uint32(len(x.slots) - 1)
	at := low & mask
	for x.slots[at].flow != 0 {
		at = (at + 1) & mask
	}
	return at
}
