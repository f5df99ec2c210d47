package flow

import (
	"io"
	"math/bits"
	"runtime"
	"sync"

	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// shardsMax bounds the shards; beyond a few they wait for the reader.
const shardsMax = 4

// Result is what a capture was reduced to.
type Result struct {
	Summary Summary
	shards  []*shard
	order   order
}

// Reduce reads captures, one after the other as if they were one, and follows
// each TCP connection in them. Damage in a capture ends the reading of that
// capture; the summary says where.
func Reduce(files []*pcapfile.File) (*Result, error) {
	return reduce(files, min(runtime.GOMAXPROCS(0), shardsMax))
}

// reduce reads and decodes, and shards follow the connections meanwhile.
func reduce(files []*pcapfile.File, shards int) (*Result, error) {
	r := newReducer(shards)
	var all sync.WaitGroup
	for _, s := range r.shards {
		s.startQueue()
		all.Go(s.follow)
	}
	err := r.summary.readAll(files, r.read)
	for _, s := range r.shards {
		s.endQueue()
	}
	all.Wait()
	if err != nil {
		return nil, err
	}
	return r.finish(), nil
}

// ReduceDecoded reduces packets that another reader and decoder found, in one
// thread: next fills in both arguments and returns io.EOF after the last packet.
// The benchmark measures this package against others by it.
func ReduceDecoded(next func(*pcapfile.Record, *packet.Segment) (packet.Kind, error)) (*Result, error) {
	r := newReducer(1)
	var rec pcapfile.Record
	var a arrival
	for {
		kind, err := next(&rec, &a.Segment)
		if err == io.EOF {
			return r.finish(), nil
		}
		if err != nil {
			return nil, err
		}
		if s := r.take(&rec, kind, &a); s != nil {
			s.tracker.add(&a)
		}
	}
}

// reducer counts packets and finds the shard of each segment.
type reducer struct {
	summary Summary
	hasher  hasher
	shards  []*shard
}

func newReducer(shards int) *reducer {
	r := &reducer{hasher: newHasher(), shards: make([]*shard, shards)}
	for i := range r.shards {
		r.shards[i] = &shard{tracker: newTracker()}
	}
	return r
}

// read reads one capture to its end, and returns why it ended: io.EOF if it did
// well.
func (r *reducer) read(reader *pcapfile.Reader) error {
	var rec pcapfile.Record
	var a arrival
	for {
		if err := reader.Next(&rec); err != nil {
			return err
		}
		kind := packet.Decode(rec.LinkType, rec.Data, rec.WireLen, &a.Segment)
		if s := r.take(&rec, kind, &a); s != nil {
			s.queue(&a)
		}
	}
}

// take takes the next packet of the capture, decoded. It returns the shard that
// is to follow it, and nil if none is.
func (r *reducer) take(rec *pcapfile.Record, kind packet.Kind, a *arrival) *shard {
	if !r.summary.count(rec, kind, &a.Segment) {
		return nil
	}
	a.hash = r.hasher.hash(&a.Segment)
	a.number, a.timeNs, a.fine = r.summary.Packets, rec.TimeNs, rec.FineClock
	owner, _ := bits.Mul64(a.hash, uint64(len(r.shards)))
	return r.shards[owner]
}

// finish puts together what the shards found.
func (r *reducer) finish() *Result {
	result := &Result{Summary: r.summary, shards: r.shards, order: newOrder(r.shards)}
	result.Summary.Flows = uint64(result.Len())
	for _, s := range r.shards {
		result.Summary.MissingBytes += s.tracker.missingBytes
		s.tracker.index, s.tracker.spare = index{}, nil // no longer needed
	}
	return result
}
