// Package netns gives tests and benchmarks a network namespace of their own, with nothing in it but the loopback.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideVariable marks the process that runs in the new namespace.
const insideVariable = "CONNLAB_INSIDE_NETNS"

// ErrForbidden says that this user may not make a network namespace.
var ErrForbidden = errors.New("making a network namespace takes the capability SYS_ADMIN")

// Reexecute runs the program once more in a new network namespace and returns its exit code. In the new process it
// returns at once, with inside set and the loopback up.
func Reexecute() (inside bool, code int, err error) {
	if os.Getenv(insideVariable) != "" {
		return true, 0, loopbackUp()
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), insideVariable+"=1")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	err = again.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return false, exit.ExitCode(), nil
	case errors.Is(err, unix.EPERM):
		return false, 0, ErrForbidden
	}
	return false, 0, err
}

// TestMain runs a package's tests in a new network namespace, where that is allowed.
func TestMain(m *testing.M) {
	inside, code, err := Reexecute()
	if inside || errors.Is(err, ErrForbidden) {
		code, err = m.Run(), nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Require skips a test that has no network namespace of its own. With CONNLAB_PRIVILEGED=1 the test fails instead: a
// check must not pass because it could not run.
func Require(t *testing.T) {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return
	}
	if os.Getenv("CONNLAB_PRIVILEGED") == "1" {
		t.Fatal(ErrForbidden)
	}
	t.Skip(ErrForbidden)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	}
	return errors.Join(err, unix.Close(fd))
}
