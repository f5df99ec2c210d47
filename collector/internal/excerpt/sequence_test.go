package excerpt

import "testing"

func TestASequenceGoesOnBeyondItsNumbers(t *testing.T) {
	const isn, step = 0x7fff_ff00, 40_000
	var s sequence
	s.of(isn, true)
	for place := int64(1); place < 1<<34; place += step {
		if got := s.of(isn+uint32(place), false); got != place {
			t.Fatalf("%d, want %d", got, place)
		}
	}
}
