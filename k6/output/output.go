// Package output is k6's output "connlab": one line for each request, and the run's counts once a second.
package output

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"go.k6.io/k6/errext"
	"go.k6.io/k6/errext/exitcodes"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/metrics"
	k6output "go.k6.io/k6/output"

	"connlab/k6/dial"
	"connlab/k6/exchange"
	"connlab/k6/record"
)

// exitRecordFailed is k6's exit code when the record could not be written. k6 itself uses 97 to 110.
const exitRecordFailed = 120

// neededTags are the system tags without which requests.jsonl would have holes.
var neededTags = []metrics.SystemTag{
	metrics.TagScenario, metrics.TagName, metrics.TagMethod, metrics.TagStatus, metrics.TagError, metrics.TagErrorCode,
}

// Output implements k6's output.Output for --out connlab=<folder>.
type Output struct {
	journal   *record.Journal
	dials     *dial.Log
	exchanges *exchange.Log
	execution *atomic.Pointer[lib.ExecutionState]
	folder    string
	instance  string
	stderr    io.Writer
	exit      func(int)

	stopRun  func(error)
	builtin  *metrics.BuiltinMetrics
	requests *requests
	counts   *counts
	live     *k6output.PeriodicFlusher
}

var (
	_ k6output.WithBuiltinMetrics    = &Output{}
	_ k6output.WithTestRunStop       = &Output{}
	_ k6output.WithStopWithTestError = &Output{}
)

// NewConstructor returns the constructor to register with k6. execution is k6's account of the test, nil before its first
// iteration. exit ends the process when k6 has no other way left to fail: it ignores what its outputs return at the end.
func NewConstructor(
	journal *record.Journal, dials *dial.Log, exchanges *exchange.Log, execution *atomic.Pointer[lib.ExecutionState],
	exit func(int),
) k6output.Constructor {
	return func(params k6output.Params) (k6output.Output, error) {
		folder, instance := params.ConfigArgument, params.Environment["CONNLAB_INSTANCE"]
		if folder == "" {
			return nil, errors.New("it needs a folder: --out connlab=<folder>")
		}
		if instance == "" {
			return nil, errors.New("CONNLAB_INSTANCE must name this instance, such as k6-1")
		}
		for _, tag := range neededTags {
			if !params.ScriptOptions.SystemTags.Has(tag) {
				return nil, fmt.Errorf("the script's option systemTags must contain %q", tag)
			}
		}
		return &Output{
			journal: journal, dials: dials, exchanges: exchanges, execution: execution, folder: folder,
			instance: instance, stderr: params.StdErr, exit: exit, requests: newRequests(), counts: newCounts(),
		}, nil
	}
}

// Description implements output.Output.
func (o *Output) Description() string { return "connlab (" + o.folder + ")" }

// SetBuiltinMetrics implements output.WithBuiltinMetrics.
func (o *Output) SetBuiltinMetrics(builtin *metrics.BuiltinMetrics) { o.builtin = builtin }

// SetTestRunStopCallback implements output.WithTestRunStop.
func (o *Output) SetTestRunStopCallback(stop func(error)) { o.stopRun = stop }

// Start implements output.Output.
func (o *Output) Start() error {
	if err := o.journal.Open(o.folder, o.instance, o.recordFailed); err != nil {
		return err
	}
	live, err := k6output.NewPeriodicFlusher(time.Second, func() {
		o.appendExchanges(false)
		o.appendCounts()
	})
	o.live = live
	return err
}

// AddMetricSamples implements output.Output. It encodes at once: the trails are many, and keeping them would cost the
// garbage collector more than encoding costs.
func (o *Output) AddMetricSamples(containers []metrics.SampleContainer) {
	if len(containers) == 0 {
		return
	}
	o.counts.add(containers, o.builtin, o.exchanges.Observe)
	var err error
	o.journal.Requests.Append(func(lines []byte) []byte {
		lines, err = o.requests.appendLines(lines, containers)
		return lines
	})
	if err != nil {
		o.journal.Fail(err)
	}
}

// Stop implements output.Output.
func (o *Output) Stop() error { return o.StopWithTestError(nil) }

// StopWithTestError implements output.WithStopWithTestError. The end lines, the proof that k6 ended in order, are
// written only if it did.
func (o *Output) StopWithTestError(runErr error) error {
	dials, failed := o.dials.Finish()
	o.appendExchanges(true)
	o.live.Stop()
	if endedInOrder(runErr) {
		o.appendEnds(dials, failed)
	}
	err := o.journal.Close()
	if err != nil && runErr == nil {
		o.report(err)
		o.exit(exitRecordFailed)
	}
	return err
}

// endedInOrder holds for a run that went to its end and then missed its thresholds, too.
func endedInOrder(runErr error) bool {
	var coded errext.HasExitCode
	if !errors.As(runErr, &coded) {
		return runErr == nil
	}
	return coded.ExitCode() == exitcodes.ThresholdsHaveFailed || coded.ExitCode() == exitcodes.MarkedAsFailed
}

func (o *Output) appendEnds(dials, failed uint64) {
	now := time.Now()
	o.journal.Dials.Append(func(lines []byte) []byte {
		lines = record.AppendTime(append(lines, `{"kind":"end","time_us":`...), now)
		lines = strconv.AppendUint(append(lines, `,"dials":`...), dials, 10)
		lines = strconv.AppendUint(append(lines, `,"failed":`...), failed, 10)
		return append(lines, "}\n"...)
	})
	o.journal.Requests.Append(func(lines []byte) []byte {
		lines = record.AppendTime(append(lines, `{"kind":"end","time_us":`...), now)
		lines = strconv.AppendUint(append(lines, `,"requests":`...), o.requests.lastID, 10)
		return append(lines, "}\n"...)
	})
	o.journal.Events.Append(func(lines []byte) []byte {
		lines = record.AppendTime(append(lines, `{"kind":"end","time_us":`...), now)
		return append(lines, "}\n"...)
	})
}

// appendExchanges writes the lines of the WebSocket sessions and gRPC calls that have ended; of all, if k6 has.
func (o *Output) appendExchanges(ended bool) {
	now := time.Now()
	taken := o.exchanges.Take(now, ended)
	if len(taken) == 0 {
		return
	}
	o.journal.Requests.Append(func(lines []byte) []byte {
		for _, each := range taken {
			done := each.Done(now)
			o.counts.addExchange(done)
			lines = o.requests.appendExchange(lines, each, done)
		}
		return lines
	})
}

func (o *Output) appendCounts() {
	now := time.Now()
	var interrupted uint64
	if state := o.execution.Load(); state != nil {
		interrupted = state.GetPartialIterationCount()
	}
	o.journal.Live.Append(func(lines []byte) []byte { return o.counts.appendLine(lines, now, interrupted) })
}

// recordFailed stops a run whose record cannot be kept. k6's own log may be on the disk that is full.
func (o *Output) recordFailed(err error) {
	o.report(err)
	o.stopRun(errext.WithExitCodeIfNone(
		errext.WithAbortReasonIfNone(err, errext.AbortedByOutput), exitRecordFailed))
}

func (o *Output) report(err error) {
	_, _ = fmt.Fprintf(o.stderr, "k6: the record of the run is broken, so k6 stops: %v\n", err)
}
