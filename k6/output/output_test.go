package output

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.k6.io/k6/errext"
	"go.k6.io/k6/errext/exitcodes"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/metrics"
	k6output "go.k6.io/k6/output"

	"connlab/k6/dial"
	"connlab/k6/exchange"
	"connlab/k6/record"
)

// started is an output with a folder of its own, and what it did to k6.
type started struct {
	*Output

	journal   *record.Journal
	execution atomic.Pointer[lib.ExecutionState]
	folder    string
	stderr    bytes.Buffer
	stopped   []error
	exits     []int
}

func params(folder string) k6output.Params {
	return k6output.Params{
		ConfigArgument: folder,
		Environment:    map[string]string{"CONNLAB_INSTANCE": "k6-1"},
		ScriptOptions:  lib.Options{SystemTags: &metrics.DefaultSystemTagSet},
	}
}

func start(t *testing.T) *started {
	t.Helper()
	s := &started{journal: new(record.Journal), folder: t.TempDir()}
	with := params(s.folder)
	with.StdErr = &s.stderr
	exit := func(code int) { s.exits = append(s.exits, code) }
	made, err := NewConstructor(s.journal, dial.NewLog(s.journal), exchange.NewLog(func() bool { return true }), &s.execution, exit)(with)
	if err != nil {
		t.Fatal(err)
	}
	s.Output = made.(*Output)
	s.SetTestRunStopCallback(func(err error) { s.stopped = append(s.stopped, err) })
	s.SetBuiltinMetrics(metrics.RegisterBuiltinMetrics(metrics.NewRegistry()))
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// ends counts the files that end with an end line.
func (s *started) ends(t *testing.T) int {
	t.Helper()
	ends := 0
	for _, name := range []string{"dials", "requests", "events"} {
		content, err := os.ReadFile(filepath.Join(s.folder, name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		ends += bytes.Count(content, []byte(`{"kind":"end",`))
	}
	return ends
}

func TestAnOutputThatWouldLeaveHolesIsRefused(t *testing.T) {
	for wanted, change := range map[string]func(*k6output.Params){
		"needs a folder":              func(p *k6output.Params) { p.ConfigArgument = "" },
		"CONNLAB_INSTANCE must name":  func(p *k6output.Params) { p.Environment = nil },
		`must contain "error_code"`:   func(p *k6output.Params) { p.ScriptOptions.SystemTags = allTagsBut(metrics.TagErrorCode) },
		`must contain "scenario"`:     func(p *k6output.Params) { p.ScriptOptions.SystemTags = allTagsBut(metrics.TagScenario) },
		`option systemTags must cont`: func(p *k6output.Params) { p.ScriptOptions.SystemTags = new(metrics.SystemTagSet) },
	} {
		with := params(t.TempDir())
		change(&with)
		_, err := NewConstructor(nil, nil, nil, nil, nil)(with)
		if err == nil || !strings.Contains(err.Error(), wanted) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q was wanted, not %v", wanted, err)
		}
	}
}

func allTagsBut(left metrics.SystemTag) *metrics.SystemTagSet {
	tags := metrics.DefaultSystemTagSet &^ metrics.SystemTagSet(left)
	return &tags
}

func TestTheEndLinesAreWrittenOnlyByARunThatWentToItsEnd(t *testing.T) {
	coded := func(code exitcodes.ExitCode) error { return errext.WithExitCodeIfNone(errors.New("it ended"), code) }
	for _, c := range []struct {
		name string
		err  error
		ends int
	}{
		{"in order", nil, 3},
		{"with thresholds missed", coded(exitcodes.ThresholdsHaveFailed), 3},
		{"marked as failed by the script", coded(exitcodes.MarkedAsFailed), 3},
		{"by a signal", coded(exitcodes.ExternalAbort), 0},
		{"by the script", coded(exitcodes.ScriptAborted), 0},
		{"by an error without a code", errors.New("it broke"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t)
			if err := s.StopWithTestError(c.err); err != nil {
				t.Error(err)
			}
			if ends := s.ends(t); ends != c.ends || len(s.exits) != 0 {
				t.Errorf("%d end lines, not %d; exits %v", ends, c.ends, s.exits)
			}
		})
	}
}

func TestTheLastCountsHaveTheIterationsThatK6Interrupted(t *testing.T) {
	all, err := lib.NewExecutionTuple(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	state := lib.NewExecutionState(nil, all, 1, 1)
	for wanted, execution := range map[string]*lib.ExecutionState{
		`"interrupted_iterations":3`: state,
		`"interrupted_iterations":0`: nil, // no iteration has begun
	} {
		s := start(t)
		s.execution.Store(execution)
		if execution != nil {
			execution.AddInterruptedIterations(3)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if live, err := os.ReadFile(filepath.Join(s.folder, "live.jsonl")); err != nil || !strings.Contains(string(live), wanted) {
			t.Errorf("%q was wanted, not %s (%v)", wanted, live, err)
		}
	}
}

func TestABrokenRecordStopsTheRunAndFailsK6(t *testing.T) {
	s := start(t)
	broken := errors.New("no space left on device")
	s.journal.Fail(broken)
	var coded errext.HasExitCode
	if len(s.stopped) != 1 || !errors.As(s.stopped[0], &coded) || coded.ExitCode() != exitRecordFailed {
		t.Errorf("k6 was stopped with %v", s.stopped)
	}
	if s.stderr.String() != "k6: the record of the run is broken, so k6 stops: no space left on device\n" {
		t.Errorf("stderr: %q", &s.stderr)
	}
	if err := s.StopWithTestError(s.stopped[0]); !errors.Is(err, broken) || s.ends(t) != 0 || len(s.exits) != 0 {
		t.Errorf("it ended with %v, %d end lines, exits %v", err, s.ends(t), s.exits)
	}
}

func TestARecordThatBreaksAtTheEndFailsK6ToTheLast(t *testing.T) {
	s := start(t)
	s.journal.Fail(errors.New("no space left on device"))
	// k6 had ended its run already.
	_ = s.Stop()
	if len(s.exits) != 1 || s.exits[0] != exitRecordFailed {
		t.Errorf("exits %v", s.exits)
	}
}
