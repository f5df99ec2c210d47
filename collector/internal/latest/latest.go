// Package latest holds the figures of the sampler's last ticks for readers that ask between two ticks.
package latest

import (
	"slices"
	"sync"
	"time"

	"connlab/collector/internal/procfs"
	"connlab/collector/internal/procnet"
	"connlab/collector/internal/sockdiag"
)

// A Reading is what the sampler knows now. Figures that come once a second, or every five seconds, are those of their
// last reading.
type Reading struct {
	// Time is the last tick's; zero before the first.
	Time      time.Time
	Counters  []procnet.Counter
	Listeners []sockdiag.Listener
	// Sockets are counted by state and side, TIME_WAIT with them; none are known before the first reading of them.
	Sockets      map[Kind]int
	SocketsKnown bool
	// CPU is what the role's processes have used; unknown until the first process was seen.
	CPU      time.Duration
	CPUKnown bool
	Sampler  Sampler
}

// A Kind is what sockets are counted by.
type Kind struct {
	State sockdiag.State
	Side  sockdiag.Side
}

// A Sampler is what the sampler says about itself.
type Sampler struct {
	Ticks, LateTicks, Gaps int64
	Late, LateMax          time.Duration
	CPU                    time.Duration
}

// A Holder keeps one reading. Taking over a tick costs copies and no garbage, and waits for a reader no longer than the
// reader's copy takes.
type Holder struct {
	mutex   sync.Mutex
	reading Reading
	// before is what each process had used when it was last seen.
	before, seen map[int]int64
}

// New returns a holder that knows nothing yet.
func New() *Holder {
	return &Holder{
		reading: Reading{Sockets: map[Kind]int{}}, before: map[int]int64{}, seen: map[int]int64{},
	}
}

// Tick takes over a tick's counters and listeners, and what the sampler says about itself.
func (h *Holder) Tick(now time.Time, tables []*procnet.Table, listeners []sockdiag.Listener, sampler Sampler) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.reading.Time, h.reading.Sampler = now, sampler
	h.reading.Counters = h.reading.Counters[:0]
	for _, table := range tables {
		h.reading.Counters = append(h.reading.Counters, table.Counters()...)
	}
	h.reading.Listeners = append(h.reading.Listeners[:0], listeners...)
}

// Groups takes over a reading of the sockets. A reading without TIME_WAIT leaves the last count of it unchanged.
func (h *Holder) Groups(groups []sockdiag.Group, withTimeWait bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for kind := range h.reading.Sockets {
		if withTimeWait || kind.State != sockdiag.TimeWait {
			delete(h.reading.Sockets, kind)
		}
	}
	for _, g := range groups {
		h.reading.Sockets[Kind{g.State, g.Side}] += g.Count
	}
	h.reading.SocketsKnown = true
}

// Processes adds what the processes have used since they were last seen. A sum over the running processes would fall
// when one ends.
func (h *Holder) Processes(processes []procfs.Process) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	clear(h.seen)
	for _, p := range processes {
		used := p.CPUms - h.before[p.PID]
		if used < 0 {
			// Another process has the number now.
			used = p.CPUms
		}
		h.reading.CPU += time.Duration(used) * time.Millisecond
		h.reading.CPUKnown = true
		h.seen[p.PID] = p.CPUms
	}
	h.before, h.seen = h.seen, h.before
}

// Reading gives a copy of what is known; before the first tick there is none.
func (h *Holder) Reading() (reading Reading, known bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	reading = h.reading
	reading.Counters = slices.Clone(h.reading.Counters)
	reading.Listeners = slices.Clone(h.reading.Listeners)
	reading.Sockets = make(map[Kind]int, len(h.reading.Sockets))
	for kind, count := range h.reading.Sockets {
		reading.Sockets[kind] = count
	}
	return reading, !reading.Time.IsZero()
}
