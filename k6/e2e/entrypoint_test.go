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

func TestTheEntryPointRefusesABadEnvironmentInOneLine(t *testing.T) {
	t.Parallel()
	good := map[string]string{"WORKLOAD": "users", "INSTANCE": "k6-1", "SEGMENT": "0:1", "SEGMENT_SEQUENCE": "0,1", "DASHBOARD": "false"}
	for wanted, change := range map[string][2]string{
		"CONNLAB_WORKLOAD is missing":                                {"WORKLOAD", ""},
		"CONNLAB_WORKLOAD must be users, spike,":                     {"WORKLOAD", "user"},
		"not '../?users'":                                            {"WORKLOAD", "../\nusers"},
		"CONNLAB_INSTANCE is missing":                                {"INSTANCE", ""},
		"CONNLAB_SEGMENT must be a part of the load":                 {"SEGMENT", "half"},
		"CONNLAB_SEGMENT_SEQUENCE must name all parts":               {"SEGMENT_SEQUENCE", "0:1"},
		"CONNLAB_DASHBOARD is missing":                               {"DASHBOARD", ""},
		"CONNLAB_DASHBOARD must be true or false, not 'yes'":         {"DASHBOARD", "yes"},
		"the workload sequential has one user: CONNLAB_SEGMENT must": {"SEGMENT", "0:1/2"},
	} {
		knobs := maps.Clone(good)
		knobs[change[0]] = change[1]
		if change[0] == "SEGMENT" && change[1] != "half" {
			knobs["WORKLOAD"] = "sequential"
		}
		var stderr bytes.Buffer
		command := exec.Command(filepath.Join("..", "connlab-k6"))
		command.Env, command.Stderr = []string{"PATH=" + os.Getenv("PATH")}, &stderr
		for name, value := range knobs {
			command.Env = append(command.Env, "CONNLAB_"+name+"="+value)
		}
		var failed *exec.ExitError
		if err := command.Run(); !errors.As(err, &failed) || failed.ExitCode() != 2 {
			t.Errorf("%v: %v", change, err)
		}
		if line := stderr.String(); !strings.HasPrefix(line, "connlab-k6: ") || !strings.Contains(line, wanted) || strings.Count(line, "\n") != 1 {
			t.Errorf("%v: %q", change, line)
		}
	}
}
