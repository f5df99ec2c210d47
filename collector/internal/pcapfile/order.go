package pcapfile

import (
	"encoding/binary"
	"math/bits"
)

// bigEndian is the byte order of a file: big-endian if true, else
// little-endian. It is a bool, not a binary.ByteOrder, so that reading a number
// costs no dynamic call.
type bigEndian bool

func (big bigEndian) uint16(b []byte) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func (big bigEndian) uint32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (big bigEndian) uint64(b []byte) uint64 {
	v := binary.LittleEndian.Uint64(b)
	if big {
		v = bits.ReverseBytes64(v)
	}
	return v
}
