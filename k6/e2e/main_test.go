package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// k6Binary is built with the race detector, which then watches whole runs.
var k6Binary string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "connlab-k6-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	k6Binary = filepath.Join(folder, "k6")
	if out, err := exec.Command("go", "build", "-race", "-o", k6Binary, "connlab/k6").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building k6: %w\n%s", err, out)
	}
	return m.Run(), nil
}
