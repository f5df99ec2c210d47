package exchange

import (
	"testing"
	"time"

	"connlab/k6/dial"
)

func TestACallWhoseDepartureIsToldAfterItsAnswerHasNoTimeBelowNothing(t *testing.T) {
	const ms = time.Millisecond
	start := time.Now()
	for _, one := range []struct{ told, blocked, waiting time.Duration }{{3 * ms, 3 * ms, ms}, {5 * ms, 4 * ms, 0}} {
		call := &Exchange{Protocol: GRPC, attempt: &dial.Attempt{Start: start}}
		call.gotConn, call.answer, call.End = start.Add(one.told), start.Add(4*ms), start.Add(6*ms)
		done := call.Done(start.Add(9 * ms))
		if done.Blocked != one.blocked || done.Waiting != one.waiting || done.Receiving != 2*ms {
			t.Errorf("told after %s: %s, %s, %s", one.told, done.Blocked, done.Waiting, done.Receiving)
		}
	}
}
