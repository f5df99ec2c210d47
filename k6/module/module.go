// Package module is k6/x/connlab, the JavaScript side of the lab's extension.
package module

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/js/modules"
	"go.k6.io/k6/lib"

	"connlab/k6/dial"
	"connlab/k6/record"
)

// iterStart is k6's event.IterStart, the first moment at which a VU has its dialer. Its package is internal to k6.
const iterStart = 4

// Module is the extension, one for the whole process.
type Module struct {
	journal   *record.Journal
	dials     *dial.Log
	execution *atomic.Pointer[lib.ExecutionState]

	repeatErrors sync.Once
}

// New returns the extension; its VUs leave their records in the journal, their dials in the log, and k6's account of the
// whole test in execution.
func New(journal *record.Journal, dials *dial.Log, execution *atomic.Pointer[lib.ExecutionState]) *Module {
	return &Module{journal: journal, dials: dials, execution: execution}
}

// NewModuleInstance implements modules.Module. Importing the extension is enough for a VU's dials to be recorded.
func (m *Module) NewModuleInstance(vu modules.VU) modules.Instance {
	m.repeatErrors.Do(func() { repeatErrorsOnStderr(vu.InitEnv().Logger) })
	settings, err := connectionSettings(vu.InitEnv().LookupEnv)
	if err != nil {
		common.Throw(vu.Runtime(), err)
	}
	m.installAtFirstIteration(vu, settings)
	return &instance{module: m, vu: vu, settings: settings}
}

func (m *Module) installAtFirstIteration(vu modules.VU, settings dial.Settings) {
	local := vu.Events().Local
	subscription, events := local.Subscribe(iterStart)
	go func() {
		event, started := <-events
		if !started {
			return
		}
		m.execution.Store(lib.GetExecutionState(vu.Context()))
		if err := m.dials.Install(vu.State(), settings); err != nil {
			m.journal.Fail(err)
		}
		// Before Done: the VU waits for all subscribers at its next iteration too.
		local.Unsubscribe(subscription)
		event.Done()
	}()
}

// instance is the extension as one VU sees it.
type instance struct {
	module   *Module
	vu       modules.VU
	settings dial.Settings
}

// Exports implements modules.Instance.
func (i *instance) Exports() modules.Exports {
	return modules.Exports{Named: map[string]any{
		"event":                i.event,
		"record":               i.record,
		"folder":               i.module.journal.Folder,
		"connectionPerRequest": i.connectionPerRequest,
		"holdHalfOpen":         i.holdHalfOpen,
	}}
}

// record records the dials of setup or teardown. These run in no VU, so no iteration begins for them.
func (i *instance) record() error {
	if err := i.module.dials.Install(i.vu.State(), i.settings); err != nil {
		return fmt.Errorf("connlab.record: %w", err)
	}
	return nil
}

// connectionPerRequest has each further request of the VU make a connection of its own, which one side closes first. With
// an interval, in milliseconds, they send the lines of their header one by one.
func (i *instance) connectionPerRequest(closesFirst dial.Side, lineIntervalMS int64) error {
	interval := time.Duration(lineIntervalMS) * time.Millisecond
	if err := dial.ConnectionPerRequest(i.vu.State(), closesFirst, interval); err != nil {
		return fmt.Errorf("connlab.connectionPerRequest: %w", err)
	}
	return nil
}

// holdHalfOpen begins a connection to an address, host:port, and holds it without completing its handshake, for a
// number of milliseconds.
func (i *instance) holdHalfOpen(address string, holdMS int64) error {
	err := dial.HoldHalfOpen(i.vu.Context(), i.vu.State(), address, time.Duration(holdMS)*time.Millisecond)
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("connlab.holdHalfOpen(%q): %w", address, err)
	}
	return nil
}

// event appends {time_us, vu, name, data} to events.jsonl.
func (i *instance) event(name string, data *sobek.Object) error {
	now := time.Now()
	state := i.vu.State()
	switch {
	case state == nil:
		return fmt.Errorf("connlab.event(%q): only a VU can have events, not the init code", name)
	case name == "":
		return fmt.Errorf("connlab.event: an event needs a name")
	case data == nil:
		return fmt.Errorf("connlab.event(%q): the data must be an object", name)
	}
	json, err := data.MarshalJSON()
	if err != nil {
		return fmt.Errorf("connlab.event(%q): %w", name, err)
	}
	i.module.journal.Events.Append(func(lines []byte) []byte { return appendEvent(lines, now, state.VUID, name, json) })
	return nil
}

func appendEvent(lines []byte, at time.Time, vu uint64, name string, data []byte) []byte {
	lines = append(lines, `{"time_us":`...)
	lines = record.AppendTime(lines, at)
	lines = append(lines, `,"vu":`...)
	lines = strconv.AppendUint(lines, vu, 10)
	lines = append(lines, `,"name":`...)
	lines = record.AppendString(lines, name)
	lines = append(lines, `,"data":`...)
	lines = append(lines, data...)
	return append(lines, "}\n"...)
}
