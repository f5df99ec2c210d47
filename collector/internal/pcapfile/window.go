package pcapfile

import (
	"errors"
	"io"
	"syscall"
)

const (
	// streamBytes is the buffer of a capture that cannot be mapped; a pipe gives no more at a time.
	streamBytes = 64 << 10
	// stepBytes is how far a mapped capture is opened at a time. What lies behind
	// is given back to the kernel, so that resident memory does not grow with the
	// file. It is a multiple of every page size in use.
	stepBytes = 8 << 20
)

// window is a view of a capture that moves forward over it.
type window struct {
	data []byte // what can be looked at
	pos  int    // where the next record begins, in data

	mapped   []byte // the whole file, if it is mapped
	released int    // up to here the mapping was given back

	stream     io.Reader // the file, if it is not mapped
	passed     int64     // bytes of the stream that left data
	buffer     []byte    // what data is a part of
	failed     error     // why the stream ended, other than by its end
	streamDone bool
}

// offset returns the position in the file.
func (w *window) offset() int64 { return w.passed + int64(w.pos) }

// need makes the next n bytes available, and says whether there are so many.
func (w *window) need(n int) bool {
	return len(w.data)-w.pos >= n || w.advance(n)
}

// left returns the number of bytes in reach; after need has failed these are
// all that the file has.
func (w *window) left() int { return len(w.data) - w.pos }

func (w *window) advance(n int) bool {
	if w.mapped != nil {
		return w.advanceMapped(n)
	}
	return w.advanceStream(n)
}

func (w *window) advanceMapped(n int) bool {
	if behind := w.pos &^ (stepBytes - 1); behind > w.released {
		// Advice only: without it the pages stay until the kernel wants them back.
		_ = syscall.Madvise(w.mapped[w.released:behind], syscall.MADV_DONTNEED)
		w.released = behind
	}
	w.data = w.mapped[:min(len(w.mapped), w.pos+n+stepBytes)]
	return w.left() >= n
}

func (w *window) advanceStream(n int) bool {
	if w.streamDone {
		return false
	}
	kept := copy(w.buffer, w.data[w.pos:])
	w.passed += int64(w.pos)
	w.pos = 0
	if n > len(w.buffer) {
		grown := make([]byte, n)
		copy(grown, w.buffer[:kept])
		w.buffer = grown
	}
	read, err := io.ReadAtLeast(w.stream, w.buffer[kept:], n-kept)
	w.data = w.buffer[:kept+read]
	if err != nil {
		w.streamDone = true
		if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			w.failed = err
		}
	}
	return w.left() >= n
}

// skip moves n bytes on and says whether there were so many.
func (w *window) skip(n int64) bool {
	for n > int64(w.left()) {
		if w.mapped != nil {
			if n > int64(len(w.mapped)-w.pos) {
				return false
			}
			w.pos += int(n)
			w.data = w.mapped[:w.pos]
			return true
		}
		n -= int64(w.left())
		w.pos = len(w.data)
		if !w.need(1) {
			return false
		}
	}
	w.pos += int(n)
	return true
}
