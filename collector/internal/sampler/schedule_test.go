package sampler

import (
	"slices"
	"testing"
	"time"
)

func TestDeadlinesDoNotDrift(t *testing.T) {
	start := time.Now()
	s := schedule{start: start, period: 100 * time.Millisecond}
	for i := range int64(1000) {
		if want := start.Add(time.Duration(i) * 100 * time.Millisecond); !s.deadline().Equal(want) {
			t.Fatalf("tick %d is due at %v, want %v", i, s.deadline().Sub(start), want.Sub(start))
		}
		// Each tick comes a little late; the next deadline must not know of it.
		if tick, late := s.arrive(s.deadline().Add(3 * time.Millisecond)); tick != i || late != 3*time.Millisecond {
			t.Fatalf("tick %d came as %d, %v late", i, tick, late)
		}
	}
	if s.ticks != 1000 || s.lateTicks != 0 || s.gaps != 0 || s.lateMax != 3*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestLateTicksAndGapsAreCounted(t *testing.T) {
	const period = 100 * time.Millisecond
	for _, test := range []struct {
		name               string
		after              time.Duration // the first deadline
		tick               int64
		late               time.Duration
		lateTicks, gaps    int64
		nextDeadlineOfTick int64
	}{
		{"before its time", -time.Millisecond, 0, 0, 0, 0, 1},
		{"in time", 0, 0, 0, 0, 0, 1},
		{"half a period is not yet late", 50 * time.Millisecond, 0, 50 * time.Millisecond, 0, 0, 1},
		{"more than half a period is late", 51 * time.Millisecond, 0, 51 * time.Millisecond, 1, 0, 1},
		{"a whole period is a gap", 100 * time.Millisecond, 1, 0, 0, 1, 2},
		{"late behind three gaps", 370 * time.Millisecond, 3, 70 * time.Millisecond, 1, 3, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			s := schedule{start: start, period: period}
			tick, late := s.arrive(start.Add(test.after))
			if tick != test.tick || late != test.late || s.lateTicks != test.lateTicks || s.gaps != test.gaps {
				t.Errorf("tick %d, %v late, %d late ticks, %d gaps", tick, late, s.lateTicks, s.gaps)
			}
			if want := max(test.after, 0); s.lateMax != want {
				t.Errorf("latest %v, want %v", s.lateMax, want)
			}
			if want := start.Add(time.Duration(test.nextDeadlineOfTick) * period); !s.deadline().Equal(want) {
				t.Errorf("the next tick is due at %v, want %v", s.deadline().Sub(start), want.Sub(start))
			}
		})
	}
}

func TestACadenceOutlivesMissedTicks(t *testing.T) {
	c := cadence{every: 10, next: 2}
	var got []int64
	for _, tick := range []int64{0, 1, 2, 3, 11, 13, 14, 22, 55, 61, 62} {
		if c.due(tick) {
			got = append(got, tick)
		}
	}
	if want := []int64{2, 13, 22, 55, 62}; !slices.Equal(got, want) {
		t.Errorf("due at %v, want %v", got, want)
	}
}
