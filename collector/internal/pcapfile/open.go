package pcapfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// File is a capture that has been recognised as one.
type File struct {
	name   string
	file   *os.File
	size   int64
	stream *Reader // nil if the file can be mapped
}

// Open opens a capture, "-" for standard input. It returns a *ForeignError when
// the file is missing, empty, or no capture.
func Open(name string) (*File, error) {
	f := &File{name: name, file: os.Stdin}
	if name == "-" {
		f.name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			var path *fs.PathError
			if errors.As(err, &path) {
				err = path.Err
			}
			return nil, &ForeignError{name, err.Error()}
		}
		f.file = file
	}
	if err := f.recognise(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) recognise() error {
	info, err := f.file.Stat()
	switch {
	case err != nil:
		return &ForeignError{f.name, err.Error()}
	case info.IsDir():
		return &ForeignError{f.name, "it is a directory"}
	case info.Mode().IsRegular() && info.Size() > 0 && info.Size() <= maxInt:
		f.size = info.Size()
		r, err := f.NewReader()
		if err != nil {
			return err
		}
		return r.Close()
	}
	f.stream, err = NewReader(f.name, f.file)
	return err
}

const maxInt = int64(^uint(0) >> 1)

// NewReader returns a reader that stands before the first packet.
func (f *File) NewReader() (*Reader, error) {
	if f.stream != nil {
		return f.stream, nil
	}
	// Each reader maps the file for itself, so that one can give back the pages
	// behind it while another still needs them.
	mapped, err := syscall.Mmap(int(f.file.Fd()), 0, int(f.size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be mapped: %w", f.name, err)
	}
	_ = syscall.Madvise(mapped, syscall.MADV_SEQUENTIAL) // advice only
	r := &Reader{
		name:   f.name,
		window: window{mapped: mapped},
		close:  func() error { return syscall.Munmap(mapped) },
	}
	if err := r.Guard(r.begin); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the file. Readers of a mapped file have their own Close.
func (f *File) Close() error {
	if f.file == os.Stdin {
		return nil
	}
	return f.file.Close()
}
