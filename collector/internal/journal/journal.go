// Package journal writes files, most of them JSON lines, that say how they ended even on a full disk.
package journal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The room reserved on disk beyond the end of a file. It grows in steps. If a step fails, the disk is full, and the
// step before still has room for a last line.
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

// Create makes a new file. It never overwrites: if the file exists, it returns an error.
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

// Append writes whole lines. An error says that further lines may have no room. The lines of this call and one
// AppendLast still fit, unless the write itself failed.
func (f *File) Append(lines []byte) error {
	if err := f.AppendLast(lines); err != nil {
		return err
	}
	if f.reserved-f.size < reserveLeft {
		return f.reserve()
	}
	return nil
}

// AppendLast writes lines into the room that was reserved before. If the file ends with a part of a line, they begin on
// a new one.
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
		// On tmpfs the call gives up at a signal, such as those that Go's scheduler sends to its own threads.
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
