// Package journal writes the gateway's files: whole lines, kept in memory for a moment.
package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// The bytes kept in memory before a write: the same as for nginx's access_log in the lab.
const bufferBytes = 64 << 10

// A File takes lines from any goroutine. A write that fails, as on a full disk, is reported once; later lines are lost,
// and Close says so.
type File struct {
	mu     sync.Mutex
	file   *os.File
	buffer []byte
	stderr io.Writer
	err    error
	closed bool
}

// Create makes a new file that all can read. It never overwrites: if the file exists, it returns an error.
func Create(path string, stderr io.Writer) (*File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write its record: %w", err)
	}
	// Independent of the umask under which the gateway starts.
	if err := file.Chmod(0o644); err != nil && !errors.Is(err, syscall.EPERM) {
		return nil, fmt.Errorf("cannot write its record: %w", err)
	}
	return &File{file: file, stderr: stderr, buffer: make([]byte, 0, 2*bufferBytes)}, nil
}

// Append adds whole lines, which build writes after the waiting ones.
func (f *File) Append(build func(lines []byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.buffer = build(f.buffer)
	if len(f.buffer) >= bufferBytes {
		f.flush()
	}
}

// Flush writes the waiting lines.
func (f *File) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flush()
}

func (f *File) flush() {
	if len(f.buffer) == 0 {
		return
	}
	if f.err == nil {
		if _, err := f.file.Write(f.buffer); err != nil {
			f.err = fmt.Errorf("its record is not complete: %w", err)
			fmt.Fprintf(f.stderr, "gateway: %s\n", f.err)
		}
	}
	f.buffer = f.buffer[:0]
}

// Close writes the rest, and returns why a line was lost, if any was. Further lines are ignored.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.flush()
	f.closed = true
	return errors.Join(f.err, f.file.Close())
}
