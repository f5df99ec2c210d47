package main

import (
	"errors"
	"testing"
	"time"
)

func TestAFaultIsTheCollectorsOnlyOnAQuietMachine(t *testing.T) {
	whole := measurement{ticks: 220, elapsed: 22 * time.Second, timeWait: 28_000}
	few, late := whole, whole
	few.timeWait, late.ticks = 27_997, 200
	for name, test := range map[string]struct {
		seen  measurement
		fault bool
	}{
		"whole": {whole, false}, "sockets that are gone": {few, true}, "ticks that are missing": {late, true},
	} {
		for _, idle := range []float64{0.1, 0.95} {
			seen := test.seen
			seen.idleShare = idle
			err := seen.judge(28_000)
			if (err != nil) != test.fault || errors.Is(err, errBusy) != (test.fault && idle < idleShareMin) {
				t.Errorf("%s, idle for %v: %v", name, idle, err)
			}
		}
	}
}

func TestTheMachinesClockGoesOn(t *testing.T) {
	all, idle, err := machineClock()
	if err != nil || all <= 0 || idle < 0 || idle > all {
		t.Errorf("%v of %v, %v", idle, all, err)
	}
}
