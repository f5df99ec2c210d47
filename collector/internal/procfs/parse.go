package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Units convert the kernel's figures.
type Units struct {
	TicksPerSecond int64 // USER_HZ, in which /proc counts CPU time
	PageBytes      int64
}

// ms converts clock ticks into milliseconds.
func (u Units) ms(ticks int64) int64 { return ticks * 1000 / u.TicksPerSecond }

// A Process is what the kernel says of one process.
type Process struct {
	PID     int
	Comm    string // the kernel's name of it: up to 15 bytes of any kind
	CPUms   int64  // user and system time since it began, all threads
	RSSkB   int64
	Threads int64
	// OpenFiles is -1 if the kernel does not say.
	OpenFiles int64
	// OpenFilesLimit is how many files it may open (RLIMIT_NOFILE, soft); -1 if the kernel does not say, or for no limit.
	OpenFilesLimit int64
	// started distinguishes a process from a later one with the same id.
	started int64
	// ended: nobody has waited for it yet.
	ended bool
}

// A Host is the CPU time of the whole machine since it started, over all CPUs.
type Host struct {
	CPUTotalMS, CPUIdleMS int64
}

// The fields of /proc/PID/stat (proc_pid_stat(5)), counted from the one after the command's name.
const (
	fieldState      = 0 // its own is the third of all
	fieldUserTime   = 14 - 3
	fieldSystemTime = 15 - 3
	fieldThreads    = 20 - 3
	fieldStarted    = 22 - 3
	fieldRSSPages   = 24 - 3
)

// parseProcess parses /proc/PID/stat. The command's name stands in parentheses and may contain parentheses.
func parseProcess(text []byte, units Units) (Process, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return Process{}, errors.New("no command name")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return Process{}, fmt.Errorf("process id: %w", err)
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= fieldRSSPages {
		return Process{}, fmt.Errorf("%d fields after the command name, want more than %d", len(fields), fieldRSSPages)
	}
	var figures [5]int64
	for i, field := range []int{fieldUserTime, fieldSystemTime, fieldThreads, fieldStarted, fieldRSSPages} {
		if figures[i], err = strconv.ParseInt(string(fields[field]), 10, 64); err != nil {
			return Process{}, fmt.Errorf("field %d: %w", field+3, err)
		}
	}
	return Process{
		PID:            pid,
		Comm:           string(text[open+1 : end]),
		CPUms:          units.ms(figures[0] + figures[1]),
		Threads:        figures[2],
		RSSkB:          figures[4] * units.PageBytes / 1024,
		OpenFiles:      -1,
		OpenFilesLimit: -1,
		started:        figures[3],
		ended:          bytes.ContainsAny(fields[fieldState], "ZX"),
	}, nil
}

// parseOpenFilesLimit parses /proc/PID/limits: the soft limit of open files, or -1 if there is none.
func parseOpenFilesLimit(text []byte) int64 {
	_, after, _ := bytes.Cut(text, []byte("Max open files"))
	fields := bytes.Fields(after)
	if len(fields) == 0 {
		return -1
	}
	limit, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil { // "unlimited"
		return -1
	}
	return limit
}

// parseHost parses the first line of /proc/stat: user nice system idle iowait irq softirq steal, then guest times that
// user and nice already include.
func parseHost(text []byte, units Units) (Host, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 6 || string(fields[0]) != "cpu" {
		return Host{}, errors.New("the first line is not that of all CPUs")
	}
	var total, idle int64
	for i, field := range fields[1:min(len(fields), 9)] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return Host{}, fmt.Errorf("field %d: %w", i+1, err)
		}
		total += ticks
		if i == 3 || i == 4 { // idle, iowait
			idle += ticks
		}
	}
	return Host{CPUTotalMS: units.ms(total), CPUIdleMS: units.ms(idle)}, nil
}
