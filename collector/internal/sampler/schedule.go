package sampler

import "time"

// A schedule holds the ticks to deadlines that never drift: start, start + period, start + 2 periods and so on.
type schedule struct {
	start  time.Time
	period time.Duration
	next   int64 // the number of the next tick

	ticks, lateTicks, gaps int64
	lateMax                time.Duration
}

// deadline is when the next tick is due.
func (s *schedule) deadline() time.Time { return s.start.Add(time.Duration(s.next) * s.period) }

// arrive takes the next tick at the time now. It returns the tick's number and how late it is. Ticks whose whole period
// has passed never come: they count as gaps, and the current one is taken instead.
func (s *schedule) arrive(now time.Time) (tick int64, late time.Duration) {
	late = max(now.Sub(s.deadline()), 0)
	missed := int64(late / s.period)
	tick = s.next + missed
	s.next = tick + 1
	s.gaps += missed
	s.ticks++
	// Lateness is returned before the gaps are subtracted: a gap must show in the maximum.
	s.lateMax = max(s.lateMax, late)
	late -= time.Duration(missed) * s.period
	if late > s.period/2 {
		s.lateTicks++
	}
	return tick, late
}

// A cadence comes due every so many ticks, also when the very tick is missed.
type cadence struct {
	every, next int64
}

func (c *cadence) due(tick int64) bool {
	if tick < c.next {
		return false
	}
	c.next += ((tick-c.next)/c.every + 1) * c.every
	return true
}
