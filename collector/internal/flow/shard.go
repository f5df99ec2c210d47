package flow

// shard follows the connections whose hash falls to it, beside the reader.
type shard struct {
	tracker *tracker

	filling       *batch // nil if there is none
	filled, empty chan *batch
	made          int // batches
}

// batch is some segments, in order. They are handed over together because each
// handing over costs as much as following several segments.
type batch struct {
	arrivals [batchLen]arrival
	count    int
}

const (
	// batchLen is small enough for a batch to stay in the processor's cache.
	batchLen = 256
	// batches is the number of batches of one shard: enough for reader and shard
	// to be unequally fast for a while.
	batches = 8
)

func (s *shard) startQueue() {
	s.filled, s.empty = make(chan *batch, batches), make(chan *batch, batches)
}

// queue adds a segment for follow.
func (s *shard) queue(a *arrival) {
	if s.filling == nil {
		s.filling = s.next()
	}
	b := s.filling
	b.arrivals[b.count] = *a
	b.count++
	if b.count == batchLen {
		s.filled <- b
		s.filling = nil
	}
}

// next returns an empty batch. A small capture needs few of them.
func (s *shard) next() *batch {
	select {
	case b := <-s.empty:
		return b
	default:
	}
	if s.made < batches {
		s.made++
		return new(batch)
	}
	return <-s.empty
}

func (s *shard) endQueue() {
	if s.filling != nil {
		s.filled <- s.filling
	}
	close(s.filled)
}

// follow follows all that is queued.
func (s *shard) follow() {
	for b := range s.filled {
		for i := range b.arrivals[:b.count] {
			s.tracker.add(&b.arrivals[i])
		}
		b.count = 0
		s.empty <- b
	}
}
