package exchange

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/metrics"

	"connlab/k6/dial"
)

// sampleDelay is how long after an exchange's end k6 may take to hand its samples to the outputs.
const sampleDelay = time.Second

// sessionKey is the metadata by which samples of a WebSocket tell their session.
const sessionKey = "connlab_session"

// Log holds the exchanges under way, and those that ended and have no line yet.
type Log struct {
	// recorded says whether somebody takes the exchanges.
	recorded func() bool

	mu      sync.Mutex
	lastID  uint64
	open    map[string]*Exchange
	waiting []*Exchange
	calls   map[callEnd]*Exchange
}

// callEnd tells a gRPC call: k6's sample of it has its end, to the nanosecond, and its duration.
type callEnd struct {
	end      int64
	duration float64
}

// NewLog returns an empty log. recorded says whether there is a record to keep exchanges for.
func NewLog(recorded func() bool) *Log {
	return &Log{recorded: recorded, open: make(map[string]*Exchange), calls: make(map[callEnd]*Exchange)}
}

func (l *Log) begin(protocol, method, url string, tags *metrics.TagSet, attempt *dial.Attempt) *Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	begun := &Exchange{
		Protocol: protocol, Method: method, log: l, attempt: attempt, id: strconv.FormatUint(l.lastID, 10),
		Outcome: Outcome{URL: url, Tags: tags},
	}
	if l.recorded() {
		l.open[begun.id] = begun
	}
	return begun
}

func (l *Log) ended(exchange *Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[exchange.id] == exchange && (len(l.waiting) == 0 || l.waiting[len(l.waiting)-1] != exchange) {
		l.waiting = append(l.waiting, exchange)
	}
}

// Observe takes from k6's samples what only they know: a session's status and messages, a call's tags.
func (l *Log) Observe(sample metrics.Sample, builtin *metrics.BuiltinMetrics) {
	switch sample.Metric {
	case builtin.WSSessions, builtin.WSMessagesSent, builtin.WSMessagesReceived:
		l.mu.Lock()
		session := l.open[sample.Metadata[sessionKey]]
		l.mu.Unlock()
		if session == nil {
			return
		}
		session.note(func() {
			switch sample.Metric {
			case builtin.WSMessagesSent:
				session.Sent++
			case builtin.WSMessagesReceived:
				session.Received++
			default:
				text, _ := sample.Tags.Get("status")
				session.Status, _ = strconv.Atoi(text)
			}
		})
	case builtin.GRPCReqDuration:
		key := callEnd{sample.Time.UnixNano(), sample.Value}
		l.mu.Lock()
		call := l.calls[key]
		delete(l.calls, key)
		l.mu.Unlock()
		if call == nil {
			return
		}
		call.note(func() {
			call.Tags = sample.Tags
			if url, tagged := sample.Tags.Get("url"); tagged {
				call.URL = url
			}
		})
	}
}

// Take returns the exchanges whose lines can be written, and forgets them; all that there are if k6 has ended.
func (l *Log) Take(now time.Time, ended bool) []*Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []*Exchange
	kept := l.waiting[:0]
	for _, exchange := range l.waiting {
		if !ended && now.Sub(exchange.Done(now).End) < sampleDelay {
			kept = append(kept, exchange)
			continue
		}
		taken = append(taken, exchange)
		delete(l.open, exchange.id)
	}
	l.waiting = kept
	if !ended {
		return taken
	}
	for _, exchange := range l.open {
		taken = append(taken, exchange)
	}
	clear(l.open)
	clear(l.calls)
	return taken
}

// drop forgets an exchange that never began, or that another one goes on with.
func (l *Log) drop(exchange *Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, exchange.id)
	l.waiting = slices.DeleteFunc(l.waiting, func(one *Exchange) bool { return one == exchange })
}
