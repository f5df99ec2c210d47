package pcapfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// format says which of a Reader's formats its capture has. It is a number, not an
// interface, so that reading a packet costs no dynamic call.
type format uint8

const (
	formatPcap format = iota
	formatPcapng
	formatSnoop
)

// Reader reads the packets of one capture in order.
type Reader struct {
	window
	name    string
	format  format
	pcap    pcap
	pcapng  pcapng
	snoop   snoop
	packets uint64 // read so far
	ended   error  // what every further Next returns
	close   func() error
}

// NewReader reads a capture from a stream; name is for messages. It returns a
// *ForeignError when the stream does not begin like a capture.
func NewReader(name string, stream io.Reader) (*Reader, error) {
	r := &Reader{name: name, window: window{stream: stream, buffer: make([]byte, streamBytes)}}
	return r, r.begin()
}

// begin recognises the format and reads the file header. A header that is cut
// short is not an error here: Next reports it.
func (r *Reader) begin() error {
	if !r.need(4) {
		switch {
		case r.failed != nil:
			return &ForeignError{r.name, r.failed.Error()}
		case r.left() == 0:
			return &ForeignError{r.name, "it is empty"}
		}
		return &ForeignError{r.name, fmt.Sprintf("it has only %d bytes", r.left())}
	}
	switch magic := binary.LittleEndian.Uint32(r.data[r.pos:]); magic {
	case 0xa1b2c3d4:
		r.pcap = pcap{tickNs: 1000}
	case 0xa1b23c4d:
		r.pcap = pcap{tickNs: 1}
	case 0xd4c3b2a1:
		r.pcap = pcap{order: true, tickNs: 1000}
	case 0x4d3cb2a1:
		r.pcap = pcap{order: true, tickNs: 1}
	case sectionHeaderType:
		r.format = formatPcapng
		return nil
	case snoopMagic:
		r.format = formatSnoop
		err := r.snoop.readHeader(r)
		if foreign := (*ForeignError)(nil); errors.As(err, &foreign) {
			return err
		}
		r.ended = err
		return nil
	default:
		return &ForeignError{r.name, describe(magic)}
	}
	r.ended = r.pcap.readHeader(r)
	return nil
}

// describe says what a file that begins with magic seems to be.
func describe(magic uint32) string {
	switch {
	case magic&0xffff == 0x8b1f:
		return "it is compressed by gzip: decompress it first"
	case magic == 0xfd2fb528:
		return "it is compressed by zstd: decompress it first"
	case magic == 0xa1b2cd34 || magic == 0x34cdb2a1:
		return "it is in the modified pcap format of old patched libpcaps: convert it with editcap -F pcap"
	}
	var begin [4]byte
	binary.LittleEndian.PutUint32(begin[:], magic)
	return fmt.Sprintf("it begins with the bytes % x, neither pcap, pcapng nor snoop", begin)
}

// Next reads the next packet into rec. It returns io.EOF after the last one, or
// a *DamageError where the capture is cut or damaged; the packets read before
// are good.
func (r *Reader) Next(rec *Record) error {
	if r.ended != nil {
		return r.ended
	}
	var err error
	switch r.format {
	case formatPcapng:
		err = r.pcapng.next(r, rec)
	case formatSnoop:
		err = r.snoop.next(r, rec)
	default:
		err = r.pcap.next(r, rec)
	}
	if err != nil {
		r.ended = err
		return err
	}
	r.packets++
	return nil
}

// Guard calls read, which uses the reader, and turns the fault of touching a
// mapped file that has become shorter meanwhile, or whose disk fails, into a
// *DamageError.
func (r *Reader) Guard(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		caught := recover()
		if _, isFault := caught.(interface{ Addr() uintptr }); isFault {
			err = r.damaged("the file became shorter, or its disk failed, while it was read")
			r.ended = err
		} else if caught != nil {
			panic(caught)
		}
	}()
	return read()
}

// Close gives back what the reader holds.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	close := r.close
	r.close = nil
	r.ended = os.ErrClosed
	r.window = window{}
	return close()
}

// endIn returns io.EOF where the file ends before what would stand next, and
// reports that it ends inside that if there is some of it.
func (r *Reader) endIn(what string, length int64) error {
	if r.left() == 0 && r.failed == nil {
		return io.EOF
	}
	return r.cut(what, length)
}

// cut reports that the file ends inside what stands at hand, which has length
// bytes.
func (r *Reader) cut(what string, length int64) error {
	return r.cutFrom(r.offset(), what, length)
}

// cutBlock is cut for a block of pcapng that begins at an offset.
func (r *Reader) cutBlock(begin int64, kind, length uint32) error {
	return r.cutFrom(begin, fmt.Sprintf("a block of type %#x", kind), int64(length))
}

func (r *Reader) cutFrom(begin int64, what string, length int64) error {
	why := fmt.Sprintf("the file ends inside %s: %d of its %d bytes are there", what, r.offset()+int64(r.left())-begin, length)
	if r.failed != nil {
		why = r.failed.Error()
	}
	return &DamageError{Name: r.name, Offset: begin, PacketsRead: r.packets, Why: why}
}

func (r *Reader) damaged(why string) error {
	return &DamageError{Name: r.name, Offset: r.offset(), PacketsRead: r.packets, Why: why}
}
