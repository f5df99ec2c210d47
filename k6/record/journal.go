// Package record writes the raw files of one k6 instance. Each file is JSON Lines and has one buffer that all VUs share,
// so that a record costs a VU a short append and never a system call.
package record

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// flushPeriod bounds what a crash of k6 can lose.
const flushPeriod = 200 * time.Millisecond

// Journal holds the four files of a run's raw folder. Before Open and after Close its files drop all records, so that a
// script that imports k6/x/connlab runs without the output connlab too.
type Journal struct {
	Dials, Requests, Events, Live File

	mu     sync.Mutex
	folder string
	fail   func(error)
	failed error
	stop   chan struct{}
	done   chan struct{}
}

// Open creates the files in an existing folder and writes their headers. It refuses to touch files that exist: raw files
// are written once. fail is called at most once, when a record cannot be written later on.
func (j *Journal) Open(folder, instance string, fail func(error)) error {
	for _, part := range j.parts() {
		out, err := os.OpenFile(filepath.Join(folder, part.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			_ = j.closeFiles()
			return err
		}
		part.file.open(out)
		if part.schema != "" {
			part.file.Append(func(lines []byte) []byte { return appendHeader(lines, part.schema, instance) })
		}
	}
	j.mu.Lock()
	j.folder, j.fail = folder, fail
	j.mu.Unlock()
	// The first flush proves, before any load runs, that the folder takes data.
	if err := j.flush(); err != nil {
		_ = j.closeFiles()
		return err
	}
	j.stop, j.done = make(chan struct{}), make(chan struct{})
	go j.flushUntilStopped()
	return nil
}

// Folder is the open journal's folder, or "" when there is none.
func (j *Journal) Folder() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.folder
}

// Fail reports that the run's record cannot be trusted any more. The first error stops the run; later ones change nothing.
func (j *Journal) Fail(err error) {
	j.mu.Lock()
	first, fail := j.failed == nil, j.fail
	if first {
		j.failed = err
	}
	j.mu.Unlock()
	if first && fail != nil {
		fail(err)
	}
}

// Close writes what is left and closes the files. It returns the error that broke the record, if one did.
func (j *Journal) Close() error {
	if j.stop == nil {
		return nil
	}
	close(j.stop)
	<-j.done
	err := j.flush()
	if closed := j.closeFiles(); err == nil {
		err = closed
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	return err
}

type part struct {
	file         *File
	name, schema string
}

func (j *Journal) parts() []part {
	return []part{
		{&j.Dials, "dials.jsonl", "connlab.dials/1"},
		{&j.Requests, "requests.jsonl", "connlab.requests/1"},
		{&j.Events, "events.jsonl", "connlab.events/1"},
		{&j.Live, "live.jsonl", ""},
	}
}

func (j *Journal) flushUntilStopped() {
	defer close(j.done)
	ticker := time.NewTicker(flushPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-ticker.C:
			if err := j.flush(); err != nil {
				// A write after a broken one would leave a cut line in the middle of a file.
				_ = j.closeFiles()
				j.Fail(err)
				return
			}
		}
	}
}

func (j *Journal) flush() error { return j.eachFile((*File).flush) }

func (j *Journal) closeFiles() error { return j.eachFile((*File).close) }

// eachFile calls all and returns the first error: a full disk breaks every file, and one line says it best.
func (j *Journal) eachFile(call func(*File) error) error {
	var first error
	for _, part := range j.parts() {
		if err := call(part.file); first == nil {
			first = err
		}
	}
	return first
}

func appendHeader(lines []byte, schema, instance string) []byte {
	lines = append(lines, `{"kind":"header","schema":`...)
	lines = AppendString(lines, schema)
	lines = append(lines, `,"instance":`...)
	lines = AppendString(lines, instance)
	lines = append(lines, `,"time_us":`...)
	lines = AppendTime(lines, time.Now())
	return append(lines, "}\n"...)
}
