package e2e

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var good = map[string]string{"WORKLOAD": "users", "INSTANCE": "k6-1", "SEGMENT": "0:1", "SEGMENT_SEQUENCE": "0,1", "DASHBOARD": "false"}

// entryPoint is the image's, as it would be started with these settings beside others of the environment.
func entryPoint(settings map[string]string, others ...string) *exec.Cmd {
	command := exec.Command(filepath.Join("..", "connlab-k6"))
	command.Env = others
	for name, value := range settings {
		command.Env = append(command.Env, "CONNLAB_"+name+"="+value)
	}
	return command
}

func TestTheEntryPointNamesWhatIsMissingInOneLine(t *testing.T) {
	t.Parallel()
	for name := range good {
		knobs := maps.Clone(good)
		delete(knobs, name)
		var stderr bytes.Buffer
		command := entryPoint(knobs, "PATH="+os.Getenv("PATH"))
		command.Stderr = &stderr
		var failed *exec.ExitError
		if err := command.Run(); !errors.As(err, &failed) || failed.ExitCode() != 2 {
			t.Errorf("without %s: %v", name, err)
		}
		if line := stderr.String(); line != "connlab-k6: CONNLAB_"+name+" is missing\n" {
			t.Errorf("without %s: %q", name, line)
		}
	}
}

func TestK6SeesNoProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	seen := filepath.Join(folder, "seen")
	if err := os.WriteFile(filepath.Join(folder, "k6"), []byte("#!/bin/sh\nenv >"+seen+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	others := []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy", "no_proxy"} {
		others = append(others, name+"=http://proxy.invalid:3128", strings.ToUpper(name)+"=http://proxy.invalid:3128")
	}
	// It archives the scripts first; where there is no /raw, as here, it then refuses to go on.
	_ = entryPoint(good, others...).Run()
	environment, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(environment), "CONNLAB_WORKLOAD=users") || strings.Contains(string(environment), "proxy.invalid") {
		t.Errorf("%v, k6 was given:\n%s", err, environment)
	}
}
