package flow

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// add takes a segment as the next packet of a capture.
func (r *reducer) add(timeNs int64, seg packet.Segment) {
	rec := pcapfile.Record{TimeNs: timeNs, Data: make([]byte, 54), WireLen: 54}
	a := arrival{Segment: seg}
	r.take(&rec, packet.TCP, &a).tracker.add(&a)
}

func TestPackedConnectionsAreFollowedAsOpenOnes(t *testing.T) {
	traffic := flowtest.Traffic{Connections: 3 * chunkLen, Exchanges: 2, GapUs: 100, Faulty: true}
	segments := traffic.Segments(rand.New(rand.NewPCG(3, 4)))
	reduceWith := func(open int) []Flow {
		r := newReducer(1)
		r.shards[0].tracker.openMax = open
		for _, s := range segments {
			r.add(s.TimeNs, packet.Segment{
				Source: packet.AddressOf(s.From.Addr()), Destination: packet.AddressOf(s.To.Addr()),
				SourcePort: s.From.Port(), DestinationPort: s.To.Port(),
				Seq: s.Seq, Ack: s.Ack, Flags: s.Flags, Window: s.Window, Payload: uint32(s.Payload),
			})
		}
		return flowsOf(r.finish())
	}
	want := reduceWith(openMax)
	if len(want) < 3*chunkLen {
		t.Fatalf("%d flows", len(want))
	}
	for _, open := range []int{0, 1, 2} {
		if got := reduceWith(open); !reflect.DeepEqual(got, want) {
			t.Errorf("with %d open chunks the flows differ", open)
		}
	}
}

func TestAConnectionAtRestTakesLittleMemory(t *testing.T) {
	const count, bytesMax = 300_000, 200
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	r := newReducer(1)
	for i := range count {
		r.add(int64(i), packet.Segment{
			Source: packet.Address{Low: uint64(i)}, SourcePort: 40000, DestinationPort: 8080, Seq: uint32(i) * 7919, Flags: packet.SYN,
		})
	}
	if each := (live() - before) / count; each > bytesMax {
		t.Errorf("%d bytes for each connection", each)
	}
	runtime.KeepAlive(r)
}

func TestPacketsForAllConnectionsInTurnAreNotUnpackedEachTime(t *testing.T) {
	s := store{openMax: 1}
	for range 4 * chunkLen {
		s.add()
	}
	for i := range 6 * watchPackets {
		s.rest()
		s.at(uint32(i%4) * chunkLen)
	}
	if s.openMax < 4 || s.unpacked > 0 {
		t.Errorf("%d chunks are open, and %d were unpacked", s.openMax, s.unpacked)
	}
}
