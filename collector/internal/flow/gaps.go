package flow

import "slices"

// gapsMax bounds the gaps remembered for one direction of one connection.
const gapsMax = 128

// gap is a range of sequence space that has not been seen: from inclusive, to
// exclusive.
type gap struct{ from, to uint32 }

// gaps are the open gaps of one direction, in ascending order. Sequence numbers
// wrap, so all comparisons are of differences.
type gaps []gap

// add opens a gap above or below all others. It returns false if the lowest one
// had to be forgotten.
func (g *gaps) add(from, to uint32) (exact bool) {
	*g = append(*g, gap{from, to})
	for i := len(*g) - 1; i > 0 && before((*g)[i].from, (*g)[i-1].from); i-- {
		(*g)[i], (*g)[i-1] = (*g)[i-1], (*g)[i]
	}
	return g.bound()
}

// fill closes what lies in a range, and returns how many bytes that was, and
// false if the lowest gap had to be forgotten because one was split in two.
func (g *gaps) fill(from, to uint32) (filled uint32, exact bool) {
	var room [gapsMax + 1]gap
	rest := room[:0]
	for _, open := range *g {
		low, high := later(open.from, from), earlier(open.to, to)
		if !before(low, high) {
			rest = append(rest, open)
			continue
		}
		filled += high - low
		if before(open.from, low) {
			rest = append(rest, gap{open.from, low})
		}
		if before(high, open.to) {
			rest = append(rest, gap{high, open.to})
		}
	}
	*g = append((*g)[:0], rest...)
	return filled, g.bound()
}

// forget gives up what lies below a sequence number.
func (g *gaps) forget(below uint32) {
	*g = slices.DeleteFunc(*g, func(open gap) bool { return !before(below, open.to) })
	if len(*g) > 0 {
		(*g)[0].from = later((*g)[0].from, below)
	}
}

func (g *gaps) bound() (exact bool) {
	if len(*g) <= gapsMax {
		return true
	}
	*g = append((*g)[:0], (*g)[1:]...)
	return false
}

// before says whether sequence number a comes before b.
func before(a, b uint32) bool { return int32(a-b) < 0 }

func earlier(a, b uint32) uint32 {
	if before(a, b) {
		return a
	}
	return b
}

func later(a, b uint32) uint32 {
	if before(a, b) {
		return b
	}
	return a
}
