package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"connlab/gateway/internal/journal"
)

// Log numbers the dials and writes dials.jsonl: one line when a dial ends, one when its connection closes. A number is
// also that of the connection.
type Log struct {
	file *journal.File

	// mu also covers the appending, so that a connection's two lines stand in their order.
	mu       sync.Mutex
	finished bool
	lastID   int64
	written  int64
	failures int64
	pending  map[*pending]struct{}
	open     map[*Conn]struct{}
}

// errEnded stands for the outcome of a dial that the gateway's end cut short.
var errEnded = errors.New("the gateway ended while it was connecting")

// Lines of dials.jsonl: schemas/dials.schema.json.
type (
	headerLine struct {
		Kind     string `json:"kind"`
		Schema   string `json:"schema"`
		Instance string `json:"instance"`
		TimeUs   int64  `json:"time_us"`
	}
	dialLine struct {
		Kind       string  `json:"kind"`
		ID         int64   `json:"id"`
		VU         *int64  `json:"vu"` // a user of k6's; here none
		TimeUs     int64   `json:"time_us"`
		DurationUs int64   `json:"duration_us"`
		Local      *string `json:"local"`
		Remote     *string `json:"remote"`
		Error      *string `json:"error"`
		ErrorKind  *string `json:"error_kind"`
	}
	closeLine struct {
		Kind          string  `json:"kind"`
		ID            int64   `json:"id"`
		TimeUs        int64   `json:"time_us"`
		BytesSent     int64   `json:"bytes_sent"`
		BytesReceived int64   `json:"bytes_received"`
		Error         *string `json:"error"`
	}
	endLine struct {
		Kind   string `json:"kind"`
		TimeUs int64  `json:"time_us"`
		Dials  int64  `json:"dials"`
		Failed int64  `json:"failed"`
	}
)

// NewLog begins a file of dials.
func NewLog(file *journal.File) *Log {
	l := &Log{file: file, pending: make(map[*pending]struct{}), open: make(map[*Conn]struct{})}
	l.write(headerLine{"header", "connlab.dials/1", "gateway", time.Now().UnixMicro()})
	return l
}

func (l *Log) begin(remote string) *pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	dial := &pending{id: l.lastID, remote: remote, start: time.Now()}
	l.pending[dial] = struct{}{}
	return dial
}

func (l *Log) failed(dial *pending, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(dial, "", now, err)
}

// connected follows the connection from here on.
func (l *Log) connected(dial *pending, conn net.Conn, counts *counts) *Conn {
	now := time.Now()
	followed := &Conn{Conn: conn, log: l, id: dial.id, local: conn.LocalAddr().String(), counts: counts}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(dial, followed.local, now, nil)
	if !l.finished {
		l.open[followed] = struct{}{}
	}
	return followed
}

// end writes a dial's line, unless finish was faster. The caller holds mu.
func (l *Log) end(dial *pending, local string, at time.Time, err error) {
	if _, first := l.pending[dial]; !first {
		return
	}
	delete(l.pending, dial)
	l.written++
	line := dialLine{
		Kind: "dial", ID: dial.id, TimeUs: dial.start.UnixMicro(), DurationUs: at.Sub(dial.start).Microseconds(),
		Local: optional(dial.settle(local)), Remote: &dial.remote,
	}
	if err != nil {
		l.failures++
		line.Error, line.ErrorKind = optional(err.Error()), &Kinds[kindOf(err)]
	}
	l.write(line)
}

// closed writes a connection's last line, if none was before.
func (l *Log) closed(conn *Conn, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[conn]; !open {
		return
	}
	delete(l.open, conn)
	l.write(closeLine{"close", conn.id, at.UnixMicro(), conn.sent.Load(), conn.received.Load(), conn.broken.Load()})
}

// finish closes open connections, records pending dials as canceled, and writes the last line.
func (l *Log) finish() {
	l.mu.Lock()
	conns := make([]*Conn, 0, len(l.open))
	for conn := range l.open {
		conns = append(conns, conn)
	}
	l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for dial := range l.pending {
		l.end(dial, "", now, errEnded)
	}
	l.write(endLine{"end", now.UnixMicro(), l.written, l.failures})
	l.finished = true
}

func (l *Log) write(line any) {
	if l.finished {
		return
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(fmt.Sprintf("a line of dials.jsonl that is not JSON: %v", err)) // its fields are numbers and texts
	}
	l.file.Append(func(lines []byte) []byte { return append(append(lines, text...), '\n') })
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
