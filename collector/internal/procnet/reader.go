package procnet

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Reader reads all counters of one network namespace, again and again. It keeps the files open, which also pins the
// namespace: it reads the one it was opened in.
type Reader struct {
	files []*file
}

type file struct {
	path  string
	fd    int
	rows  bool // comes a few rows at a time
	table Table
	parse func(*Table, []byte) error
}

// Open opens the counter files below root, which is /proc/net except in tests. sockstat6 may be missing, as it is on a
// kernel without IPv6, and so may those of connection tracking.
func Open(root string) (*Reader, error) {
	r := &Reader{}
	for _, known := range []struct {
		name     string
		optional bool
		rows     bool
		parse    func(*Table, []byte) error
	}{
		{name: "netstat", parse: (*Table).ParsePairs},
		{name: "snmp", parse: (*Table).ParsePairs},
		{name: "sockstat", parse: func(t *Table, text []byte) error { return t.ParseSockstat(text, "sockstat.") }},
		{name: "sockstat6", optional: true, parse: func(t *Table, text []byte) error { return t.ParseSockstat(text, "sockstat6.") }},
		{name: "stat/nf_conntrack", optional: true, rows: true, parse: (*Table).ParseConntrack},
		{name: "../sys/net/netfilter/nf_conntrack_max", optional: true, parse: (*Table).ParseConntrackMax},
	} {
		path := filepath.Join(root, known.name)
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if known.optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
			continue
		}
		if err != nil {
			return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: err}, r.Close())
		}
		r.files = append(r.files, &file{path: path, fd: fd, rows: known.rows, parse: known.parse})
	}
	return r, nil
}

// Read takes a new reading of all files; buffer is scratch space, grown when needed and handed back.
func (r *Reader) Read(buffer []byte) ([]byte, error) {
	for _, f := range r.files {
		n := 0
		for {
			got, err := unix.Pread(f.fd, buffer[n:], int64(n))
			if err != nil {
				return buffer, &fs.PathError{Op: "read", Path: f.path, Err: err}
			}
			n += got
			// Each of these files but one is one record of the kernel's: it comes whole if the buffer holds it, so a
			// read that leaves room needs no second one to see the end.
			if n < len(buffer) && (!f.rows || got == 0) {
				break
			}
			if n == len(buffer) {
				buffer = append(buffer, make([]byte, len(buffer)+4096)...)
				if !f.rows {
					n = 0
				}
			}
		}
		if err := f.parse(&f.table, buffer[:n]); err != nil {
			return buffer, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return buffer, nil
}

// Tables are the counters of the last reading, one table for each file. The tables are the reader's own.
func (r *Reader) Tables() []*Table {
	tables := make([]*Table, len(r.files))
	for i, f := range r.files {
		tables[i] = &f.table
	}
	return tables
}

// Close closes the files.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, unix.Close(f.fd))
	}
	return errors.Join(errs...)
}
