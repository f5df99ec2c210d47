// Package health passes the state of a running collector to the health check, which is a separate process.
package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A State says how far a collector has come.
type State struct {
	Sampling bool `json:"sampling"` // the first tick is in the file
	Capture  bool `json:"capture"`  // tcpdump listens, or no capture was asked for
	Events   bool `json:"events"`   // the kernel's events are recorded, or cannot be, or were not asked for
	Ready    bool `json:"ready"`    // the role answered, or no check was asked for
}

// Missing is nil once all is well; otherwise it says what the collector waits for.
func (s State) Missing() error {
	var missing []string
	for _, part := range []struct {
		good bool
		name string
	}{{s.Sampling, "sampling does not run"}, {s.Capture, "the capture is not on"}, {s.Events, "the kernel's events are not recorded yet"}, {s.Ready, "the role is not ready"}} {
		if !part.good {
			missing = append(missing, part.name)
		}
	}
	if len(missing) > 0 {
		return errors.New(strings.Join(missing, ", "))
	}
	return nil
}

// A Reporter keeps the state of one collector in a file.
type Reporter struct {
	path  string
	mutex sync.Mutex
	state State
}

// NewReporter writes the first state, in place of one that an earlier collector may have left.
func NewReporter(path string, state State) (*Reporter, error) {
	r := &Reporter{path: path, state: state}
	return r, r.write()
}

// Update changes the state and writes it.
func (r *Reporter) Update(change func(*State)) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.state)
	return r.write()
}

// write replaces the file as a whole: a reader never sees half of it.
func (r *Reporter) write() error {
	text, err := json.Marshal(r.state)
	if err != nil {
		return err
	}
	next := r.path + ".next"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return err
	}
	return os.Rename(next, r.path)
}

// Read reads the state that a collector has written.
func Read(path string) (State, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return State{}, err
	}
	var state State
	if err := json.Unmarshal(text, &state); err != nil {
		return State{}, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return state, nil
}
