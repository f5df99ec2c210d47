package flow

import (
	"errors"
	"io"
	"math/bits"
	"runtime"
	"sync"

	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// shardsMax bounds the shards. Each reads the whole capture and follows its
// share of the connections; beyond a few, the reading is all that is left.
const shardsMax = 4

// Result is what a capture was reduced to.
type Result struct {
	Summary Summary
	shards  []*shard
	order   order
}

// Summary says what was read.
type Summary struct {
	Packets       uint64               // in all
	Kinds         [packet.Kinds]uint64 // packets that have a time, by what they are
	Untimed       uint64               // packets without a time
	Snapped       uint64               // TCP packets of which the capture kept only the beginning
	UnknownLink   uint32               // the first unsupported link-layer type, if Kinds counts any
	FirstNs       int64                // time of the first packet
	LastNs        int64                // time of the last packet
	BackwardSteps uint64               // packets with a time before that of the packet ahead of them
	BackwardNsMax int64                // the largest such step
	Flows         uint64
	MissingBytes  uint64 // over all flows: sent, never seen
	Damage        []Damage
}

// Damage says that one of the captures could not be read to its end.
type Damage struct {
	File int // the capture, from 1, in the order given
	*pcapfile.DamageError
}

// Reduce reads captures, one after the other as if they were one, and follows
// each TCP connection in them. Damage in a capture ends the reading of that one
// and stands in the summary.
func Reduce(files []*pcapfile.File) (*Result, error) {
	shards := min(runtime.GOMAXPROCS(0), shardsMax)
	for _, f := range files {
		if !f.Mapped() { // a stream can be read once only
			shards = 1
		}
	}
	return reduce(files, shards)
}

func reduce(files []*pcapfile.File, shards int) (*Result, error) {
	hasher := newHasher()
	result := &Result{shards: make([]*shard, shards)}
	failures := make([]error, shards)
	var all sync.WaitGroup
	for i := range shards {
		s := newShard(hasher, i, shards)
		result.shards[i] = s
		all.Go(func() { failures[i] = s.readAll(files) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	result.finish()
	return result, nil
}

// finish puts together what the shards found.
func (r *Result) finish() {
	r.Summary = r.shards[0].summary // all read the same
	r.order = newOrder(r.shards)
	r.Summary.Flows = uint64(r.Len())
	for _, s := range r.shards {
		r.Summary.MissingBytes += s.tracker.missingBytes
	}
}

// ReduceDecoded reduces packets that another reader and decoder found: next
// fills in both arguments and returns io.EOF after the last packet. The benchmark
// measures the package's own readers against others this way.
func ReduceDecoded(next func(*pcapfile.Record, *packet.Segment) (packet.Kind, error)) (*Result, error) {
	s := newShard(newHasher(), 0, 1)
	var rec pcapfile.Record
	var a arrival
	for {
		kind, err := next(&rec, &a.Segment)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		s.take(&rec, kind, &a)
	}
	result := &Result{shards: []*shard{s}}
	result.finish()
	return result, nil
}

// shard follows the connections whose hash falls to it.
type shard struct {
	tracker    *tracker
	summary    Summary
	number, of uint64
}

func newShard(h hasher, number, of int) *shard {
	return &shard{tracker: newTracker(h), number: uint64(number), of: uint64(of)}
}

func (s *shard) readAll(files []*pcapfile.File) error {
	for i, f := range files {
		r, err := f.NewReader()
		if err != nil {
			return err
		}
		err = r.Guard(func() error { return s.read(r) })
		var damage *pcapfile.DamageError
		switch {
		case errors.As(err, &damage):
			s.summary.Damage = append(s.summary.Damage, Damage{i + 1, damage})
		case err != io.EOF:
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// read reads one capture to its end, and returns why it ended: io.EOF if it did
// well.
func (s *shard) read(r *pcapfile.Reader) error {
	var rec pcapfile.Record
	var a arrival
	for {
		if err := r.Next(&rec); err != nil {
			return err
		}
		kind := packet.Decode(rec.LinkType, rec.Data, rec.WireLen, &a.Segment)
		s.take(&rec, kind, &a)
	}
}

// take takes the next packet of the capture, decoded.
func (s *shard) take(rec *pcapfile.Record, kind packet.Kind, a *arrival) {
	s.summary.Packets++
	if rec.Untimed {
		s.summary.Untimed++
		return
	}
	s.noteTime(rec.TimeNs)
	s.summary.Kinds[kind]++
	if kind != packet.TCP {
		if kind == packet.UnsupportedLink && s.summary.Kinds[kind] == 1 {
			s.summary.UnknownLink = rec.LinkType
		}
		return
	}
	if uint32(len(rec.Data)) < rec.WireLen {
		s.summary.Snapped++
	}
	a.hash = s.tracker.hasher.hash(&a.Segment)
	if owner, _ := bits.Mul64(a.hash, s.of); owner != s.number {
		return
	}
	a.number, a.timeNs, a.fine = s.summary.Packets, rec.TimeNs, rec.FineClock
	s.tracker.add(a)
}

// noteTime watches the clock of the capture.
func (s *shard) noteTime(ns int64) {
	timed := s.summary.Packets - s.summary.Untimed
	if timed == 1 {
		s.summary.FirstNs = ns
	} else if back := s.summary.LastNs - ns; back > 0 {
		s.summary.BackwardSteps++
		s.summary.BackwardNsMax = max(s.summary.BackwardNsMax, back)
	}
	s.summary.LastNs = ns
}
