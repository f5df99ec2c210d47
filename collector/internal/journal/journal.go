// Package journal writes files, of JSON lines most of them, that tell how they ended even on a full disk.
package journal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The room kept on disk beyond the end of a file. It is taken in steps; a step that fails while the last one still
// has room is how a full disk is seen in time for a last line.
const (
	reserveStep = 256 << 10
	reserveLeft = 64 << 10
)

// A File is an append-only file that keeps a reserve of disk space beyond its end.
type File struct {
	file     *os.File
	size     int64
	reserved int64
	torn     bool // a write that failed left a part of a line at the end
}

// Create makes a new file. One that exists is never overwritten: that is an error.
func Create(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	f := &File{file: file}
	if err := f.reserve(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Append writes whole lines. An error says that no further line may be sure of its room; the lines of this call and
// one AppendLast still have it, unless the write itself failed.
func (f *File) Append(lines []byte) error {
	if err := f.AppendLast(lines); err != nil {
		return err
	}
	if f.reserved-f.size < reserveLeft {
		return f.reserve()
	}
	return nil
}

// AppendLast writes lines into the room that was reserved before. They stand apart from a part of a line.
func (f *File) AppendLast(lines []byte) error {
	if f.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := f.file.Write(lines)
	f.size += int64(n)
	if n > 0 {
		f.torn = lines[n-1] != '\n'
	}
	return err
}

func (f *File) reserve() error {
	var err error
	for again := true; again; again = errors.Is(err, unix.EINTR) {
		// tmpfs gives up at a signal, such as those that Go's scheduler sends to its own threads.
		err = unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, f.size, reserveStep)
	}
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("no room left for %s: %w", f.file.Name(), err)
	}
	f.reserved = f.size + reserveStep
	return nil
}

// Close gives the reserve back and closes the file.
func (f *File) Close() error {
	return errors.Join(f.file.Truncate(f.size), f.file.Close())
}
