package latest

import (
	"testing"
	"time"

	"connlab/collector/internal/procfs"
	"connlab/collector/internal/procnet"
	"connlab/collector/internal/sockdiag"
)

func TestNothingIsKnownBeforeTheFirstTick(t *testing.T) {
	h := New()
	if _, known := h.Reading(); known {
		t.Error("there is a reading, and nothing was read")
	}
	h.Tick(time.Unix(1, 0), nil, nil, Sampler{})
	if reading, known := h.Reading(); !known || reading.SocketsKnown || reading.CPUKnown {
		t.Errorf("got %+v, %t: a tick has neither sockets nor processes", reading, known)
	}
}

func TestAReadingIsACopy(t *testing.T) {
	var table procnet.Table
	if err := table.ParsePairs([]byte("Tcp: ActiveOpens\nTcp: 1\n")); err != nil {
		t.Fatal(err)
	}
	h := New()
	h.Tick(time.Unix(1, 0), []*procnet.Table{&table}, []sockdiag.Listener{{Port: 80, Depth: 1}}, Sampler{})
	first, _ := h.Reading()
	if err := table.ParsePairs([]byte("Tcp: ActiveOpens\nTcp: 2\n")); err != nil {
		t.Fatal(err)
	}
	h.Tick(time.Unix(2, 0), []*procnet.Table{&table}, []sockdiag.Listener{{Port: 80, Depth: 2}}, Sampler{})
	second, _ := h.Reading()
	if first.Counters[0].Value != 1 || first.Listeners[0].Depth != 1 || second.Counters[0].Value != 2 || second.Listeners[0].Depth != 2 {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

func TestTimeWaitStaysAsItWasLastRead(t *testing.T) {
	h := New()
	established := sockdiag.Group{State: sockdiag.Established, Side: sockdiag.Server, Port: 80, Count: 3}
	other := sockdiag.Group{State: sockdiag.Established, Side: sockdiag.Server, Port: 81, Count: 4}
	waiting := sockdiag.Group{State: sockdiag.TimeWait, Side: sockdiag.Client, Port: 80, Count: 5}
	for i, step := range []struct {
		groups                       []sockdiag.Group
		withTimeWait                 bool
		wantEstablished, wantWaiting int
	}{
		{[]sockdiag.Group{established, other, waiting}, true, 7, 5},
		{[]sockdiag.Group{other}, false, 4, 5},
		{nil, true, 0, 0},
	} {
		h.Groups(step.groups, step.withTimeWait)
		reading, _ := h.Reading()
		gotEstablished := reading.Sockets[Kind{sockdiag.Established, sockdiag.Server}]
		gotWaiting := reading.Sockets[Kind{sockdiag.TimeWait, sockdiag.Client}]
		if gotEstablished != step.wantEstablished || gotWaiting != step.wantWaiting {
			t.Errorf("step %d: %d established, %d in TIME_WAIT, want %+v", i, gotEstablished, gotWaiting, step)
		}
	}
}

func TestProcessorTimeNeverGoesBack(t *testing.T) {
	h := New()
	for i, step := range []struct {
		processes []procfs.Process
		want      time.Duration
	}{
		{[]procfs.Process{{PID: 1, CPUms: 100}, {PID: 2, CPUms: 50}}, 150 * time.Millisecond},
		{[]procfs.Process{{PID: 1, CPUms: 130}}, 180 * time.Millisecond},                    // the other has ended
		{[]procfs.Process{{PID: 1, CPUms: 10}}, 190 * time.Millisecond},                     // another process of that number
		{[]procfs.Process{{PID: 1, CPUms: 10}, {PID: 2, CPUms: 7}}, 197 * time.Millisecond}, // a new one
		{nil, 197 * time.Millisecond},
	} {
		h.Processes(step.processes)
		if reading, _ := h.Reading(); reading.CPU != step.want || !reading.CPUKnown {
			t.Errorf("step %d: %v, want %v", i, reading.CPU, step.want)
		}
	}
}
