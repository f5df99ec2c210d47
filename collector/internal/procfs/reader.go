// Package procfs reads from /proc what the processes of a role and the whole host use.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// KernelUnits asks the kernel for its units.
func KernelUnits() (Units, error) {
	const clockTicks = 17 // AT_CLKTCK
	vector, err := unix.Auxv()
	if err != nil {
		return Units{}, fmt.Errorf("auxiliary vector: %w", err)
	}
	for _, pair := range vector {
		if pair[0] == clockTicks && pair[1] > 0 {
			return Units{TicksPerSecond: int64(pair[1]), PageBytes: int64(os.Getpagesize())}, nil
		}
	}
	return Units{}, errors.New("the auxiliary vector has no clock ticks")
}

// A Reader reads the processes of one process namespace, apart from those of its own container: a role shares its
// process namespace with its collector, and the control group distinguishes the two.
type Reader struct {
	root  string
	units Units
	// own is the control group of the collector's container, with tcpdump, the init and health checks.
	own []byte
	// countsOpenFiles: since Linux 6.2 the size of /proc/PID/fd is the number of open files.
	countsOpenFiles bool
	known           map[int]knownProcess
	round           int
	buffer          []byte
}

// starting is the prefix of runc's process name while it makes a container's process, or one that will run beside it.
// This process enters the process namespace before the control group, so nobody knows yet whose it will be.
const starting = "runc:["

type knownProcess struct {
	started int64
	own     bool
	round   int
}

// Open reads below root, which is /proc except in tests.
func Open(root string, units Units) (*Reader, error) {
	r := &Reader{root: root, units: units, known: map[int]knownProcess{}, buffer: make([]byte, 4096)}
	var err error
	if r.own, err = os.ReadFile(filepath.Join(root, "self/cgroup")); err != nil {
		return nil, err
	}
	size, err := directorySize(filepath.Join(root, "self/fd"))
	r.countsOpenFiles = err == nil && size > 0
	return r, nil
}

// Processes appends the processes that are there now, in no particular order. One that ends meanwhile is left out.
func (r *Reader) Processes(processes []Process) ([]Process, error) {
	entries, err := os.ReadDir(r.root)
	if err != nil {
		return processes, err
	}
	r.round++
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		process, own, err := r.process(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return processes, err
		}
		if !own {
			process.OpenFiles, process.OpenFilesLimit = r.openFiles(pid), r.openFilesLimit(pid)
			processes = append(processes, process)
		}
	}
	for pid, known := range r.known {
		if known.round != r.round {
			delete(r.known, pid)
		}
	}
	return processes, nil
}

// process reads one process and says whether it belongs to the collector's own container, or to nobody yet.
func (r *Reader) process(pid int) (process Process, own bool, err error) {
	directory := filepath.Join(r.root, strconv.Itoa(pid))
	path := filepath.Join(directory, "stat")
	text, err := r.read(path)
	if err != nil {
		return Process{}, false, err
	}
	if process, err = parseProcess(text, r.units); err != nil {
		return Process{}, false, fmt.Errorf("%s: %w", path, err)
	}
	if strings.HasPrefix(process.Comm, starting) {
		return process, true, nil
	}
	known, seen := r.known[pid]
	if !seen || known.started != process.started {
		if process.ended { // it has left its control group, so nobody knows whose it was
			return process, true, nil
		}
		group, err := r.read(filepath.Join(directory, "cgroup"))
		if err != nil {
			return Process{}, false, err
		}
		known = knownProcess{started: process.started, own: bytes.Equal(group, r.own)}
	}
	known.round = r.round
	r.known[pid] = known
	return process, known.own, nil
}

// openFiles is the number of a process's open files, or -1. Asking for the size needs no privilege. On older kernels
// the entries are counted, which is allowed only for processes of the same user.
func (r *Reader) openFiles(pid int) int64 {
	path := filepath.Join(r.root, strconv.Itoa(pid), "fd")
	if r.countsOpenFiles {
		if size, err := directorySize(path); err == nil {
			return size
		}
		return -1
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return -1
	}
	return int64(len(entries))
}

// openFilesLimit is how many files a process may open, or -1. A program may change it while it runs.
func (r *Reader) openFilesLimit(pid int) int64 {
	text, err := r.read(filepath.Join(r.root, strconv.Itoa(pid), "limits"))
	if err != nil {
		return -1
	}
	return parseOpenFilesLimit(text)
}

// Host reads the CPU time of the whole machine.
func (r *Reader) Host() (Host, error) {
	path := filepath.Join(r.root, "stat")
	text, err := r.read(path)
	if err != nil {
		return Host{}, err
	}
	host, err := parseHost(text, r.units)
	if err != nil {
		return Host{}, fmt.Errorf("%s: %w", path, err)
	}
	return host, nil
}

// read returns the beginning of a file, in the reader's buffer: everything that is needed here is in the first 4 KiB.
func (r *Reader) read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	n, err := unix.Read(fd, r.buffer)
	closeErr := unix.Close(fd)
	if err := errors.Join(err, closeErr); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return r.buffer[:n], nil
}

func directorySize(path string) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return stat.Size, nil
}
