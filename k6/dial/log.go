// Package dial records the connections of k6's VUs, and gives them a connect timeout of their own.
package dial

import (
	"net"
	"sync"
	"time"

	"connlab/k6/record"
)

// Log numbers the dials of all VUs and writes dials.jsonl: one line when a dial ends, one when its connection closes.
type Log struct {
	journal *record.Journal

	// mu also covers the appending, so that a connection's two lines stand in their order.
	mu       sync.Mutex
	finished bool
	lastID   uint64
	written  uint64
	failed   uint64
	pending  map[*pending]struct{}
	open     map[*Conn]struct{}
}

// NewLog returns a log that writes to the journal's file of dials.
func NewLog(journal *record.Journal) *Log {
	return &Log{
		journal: journal,
		pending: make(map[*pending]struct{}),
		open:    make(map[*Conn]struct{}),
	}
}

// Finish records the dials that are still under way as canceled, and closes the connections that are still open, as k6's
// end would a moment later. It returns how many dials were recorded and how many of them failed.
func (l *Log) Finish() (written, failed uint64) {
	l.mu.Lock()
	l.finished = true
	now := time.Now()
	for dial := range l.pending {
		l.end(dial, now, errEnded)
	}
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
	return l.written, l.failed
}

// begin gives a dial its number. After Finish the log no longer follows it.
func (l *Log) begin(vu uint64) *pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	dial := &pending{id: l.lastID, vu: vu, start: time.Now()}
	if !l.finished {
		l.pending[dial] = struct{}{}
	}
	return dial
}

func (l *Log) failedToConnect(dial *pending, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(dial, now, err)
}

// connected follows the connection from here on.
func (l *Log) connected(dial *pending, conn net.Conn) net.Conn {
	now := time.Now()
	followed := &Conn{Conn: conn, log: l, id: dial.id, remote: conn.RemoteAddr().String()}
	followed.connecting = now.Sub(dial.settle(conn.LocalAddr().String(), followed.remote))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished {
		return conn
	}
	l.end(dial, now, nil)
	l.open[followed] = struct{}{}
	return followed
}

// end writes a dial's line, unless Finish was faster than it. The caller holds mu.
func (l *Log) end(dial *pending, at time.Time, err error) {
	if _, first := l.pending[dial]; !first {
		return
	}
	delete(l.pending, dial)
	l.written++
	if err != nil {
		l.failed++
	}
	l.journal.Dials.Append(func(lines []byte) []byte { return dial.appendLine(lines, at, err) })
}

func (l *Log) closed(conn *Conn, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
	l.journal.Dials.Append(func(lines []byte) []byte { return conn.appendLine(lines, at) })
}
