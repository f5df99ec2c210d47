package record

import (
	"io"
	"sync"
)

// File is one JSON Lines file that many goroutines append to and one flushes.
type File struct {
	mu      sync.Mutex
	out     io.WriteCloser
	pending []byte
	spare   []byte
}

// Append adds whole lines: encode gets the buffer, appends records each ended by '\n', and returns it. Other writers wait
// meanwhile, so encode must not block.
func (f *File) Append(encode func(lines []byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out != nil {
		f.pending = encode(f.pending)
	}
}

func (f *File) open(out io.WriteCloser) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out, f.pending = out, f.pending[:0]
}

// flush writes outside the lock: a slow disk must not hold up the VUs. Only one flush may run at a time.
func (f *File) flush() error {
	f.mu.Lock()
	out, lines := f.out, f.pending
	f.pending = f.spare[:0]
	f.mu.Unlock()
	if out == nil || len(lines) == 0 {
		f.spare = lines
		return nil
	}
	_, err := out.Write(lines)
	f.spare = lines
	return err
}

func (f *File) close() error {
	f.mu.Lock()
	out := f.out
	f.out = nil
	f.mu.Unlock()
	if out == nil {
		return nil
	}
	return out.Close()
}
