package health

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestTheHealthCheckSeesEachStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	reporter, err := NewReporter(path, State{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		change func(*State)
		want   string
	}{
		{func(*State) {}, "sampling does not run, the capture is not on, the kernel's events are not recorded yet, the role is not ready"},
		{func(s *State) { s.Events = true }, "sampling does not run, the capture is not on, the role is not ready"},
		{func(s *State) { s.Capture = true }, "sampling does not run, the role is not ready"},
		{func(s *State) { s.Sampling = true }, "the role is not ready"},
		{func(s *State) { s.Ready = true }, ""},
		{func(s *State) { s.Capture = false }, "the capture is not on"},
	} {
		if err := reporter.Update(step.change); err != nil {
			t.Fatal(err)
		}
		state, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := state.Missing(); err != nil {
			got = err.Error()
		}
		if got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
}

func TestABrokenStateIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("it was taken")
	}
	if _, err := NewReporter(filepath.Join(path, "no", "folder"), State{}); err == nil {
		t.Error("a path that cannot be written was taken")
	}
}
