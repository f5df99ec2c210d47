// Package capture keeps tcpdump running on one interface and reports how that went.
package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connlab/collector/internal/journal"
)

// Schema names the format of capture.json.
const Schema = "connlab.capture/1"

const (
	// 128 bytes hold Ethernet, IPv6 and the longest TCP header.
	snapBytes = 128
	// tcpdump's ring for packets it has not yet written: 16 MiB.
	ringKiB = 16 << 10
	// The kernel hands a block of packets over when it is full or, at the latest, after tcpdump's timeout of 1 s;
	// packets in a block that the kernel has not handed over are lost when tcpdump ends.
	settleMax = 1200 * time.Millisecond
	// How often tcpdump is then asked whether it has them all.
	askInterval = 100 * time.Millisecond
	// How often the file's size is compared with its bound.
	sizeInterval = 100 * time.Millisecond
	// How long tcpdump may take to write the rest and end.
	patience = 5 * time.Second
)

// Config says what to capture and where to.
type Config struct {
	Mode      Mode
	Interface string
	// PacketsPath is the pcap file, ReportPath the JSON file that says how the capture went. Neither may exist.
	PacketsPath, ReportPath string
	// HeadersOnly cuts off the data of which snapBytes has a part.
	HeadersOnly bool
	// BytesMax bounds the pcap file. The size is read from time to time, so the file may end a little above it.
	BytesMax int64
	// settleMax is another bound, for tests; 0 stands for the constant.
	settleMax time.Duration
}

// A Report is the content of capture.json.
type Report struct {
	Schema    string `json:"schema"`
	Mode      Mode   `json:"mode"`
	Interface string `json:"interface"`
	Filter    string `json:"filter"`
	Snaplen   int    `json:"snaplen"`
	// StartedUs is when tcpdump listened; nil if it never did.
	StartedUs *int64 `json:"started_us"`
	EndedUs   int64  `json:"ended_us"`
	statistics
	// Bytes is the size of the pcap file; nil if there is none.
	Bytes *int64 `json:"bytes"`
	// CPUms is what tcpdump itself used. The kernel charges its own share of the work to the processes that send and
	// receive.
	CPUms int64 `json:"cpu_ms"`
	// Truncated: the size limit ended the capture before the run did.
	Truncated bool `json:"truncated"`
	// Reason is why the capture ended before the run did, or why its figures are incomplete; nil if all is well.
	Reason *string `json:"reason"`
}

// Run captures until the context is done, and writes the report. It calls listening once tcpdump is at work. The report
// says why a capture failed; Run returns no error for that, because sampling goes on without it. It returns an error if
// the report cannot be written. The report's file stays empty until the capture has ended.
func Run(ctx context.Context, config Config, listening func()) (Report, error) {
	report := Report{
		Schema: Schema, Mode: config.Mode, Interface: config.Interface, Filter: filter(config.Mode), Snaplen: snapBytes,
	}
	// Made first, with room for the report, because the capture itself may fill the disk.
	file, err := journal.Create(config.ReportPath)
	if err != nil {
		return report, err
	}
	if err := capture(ctx, config, &report, listening); err != nil {
		reason := err.Error()
		report.Reason = &reason
	}
	if info, err := os.Stat(config.PacketsPath); err == nil {
		size := info.Size()
		report.Bytes = &size
	}
	text, err := json.Marshal(report)
	if err == nil {
		err = file.AppendLast(append(text, '\n'))
	}
	return report, errors.Join(err, file.Close())
}

// capture runs tcpdump to its end and fills the report. The error says why the capture ended before the context did.
func capture(ctx context.Context, config Config, report *Report, listening func()) error {
	defer func() { report.EndedUs = time.Now().UnixMicro() }()
	if _, err := os.Lstat(config.PacketsPath); err == nil {
		return fmt.Errorf("%s exists already", config.PacketsPath)
	}
	// -p: the interface stays in the mode that it is in.
	arguments := []string{
		"-i", config.Interface, "-p", "-n", "--nano", "-s", strconv.Itoa(snapBytes), "-B", strconv.Itoa(ringKiB),
		"-Z", "root",
	}
	if config.HeadersOnly {
		// -U: if the observed target ends, the collector is killed with it, and tcpdump must not hold back packets
		// then.
		arguments = append(arguments, "-U", "-w", "-")
	} else {
		arguments = append(arguments, "-w", config.PacketsPath)
	}
	command := exec.Command("tcpdump", append(arguments, report.Filter)...)
	// A process group of its own: Ctrl-C in a terminal must not stop it before the settling time.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	messages, err := command.StderrPipe()
	if err != nil {
		return err
	}
	copied := make(chan error, 1)
	if config.HeadersOnly {
		packets, err := command.StdoutPipe()
		if err != nil {
			return err
		}
		if err := command.Start(); err != nil {
			return err
		}
		go func() {
			err := copyHeaders(config.PacketsPath, packets)
			if err != nil {
				// Nobody reads tcpdump's output any more, so it must not wait for a reader.
				_ = command.Process.Kill()
			}
			copied <- err
		}()
	} else {
		copied <- nil
		if err := command.Start(); err != nil {
			return err
		}
	}
	tcpdump := running{process: command.Process, listens: make(chan struct{}), told: make(chan statistics, 1), read: make(chan output, 1)}
	go func() {
		tcpdump.read <- readOutput(messages, func() {
			now := time.Now().UnixMicro()
			report.StartedUs = &now
			close(tcpdump.listens)
			listening()
		}, tcpdump.told)
	}()
	stopped := supervise(ctx, config, tcpdump)
	report.statistics = stopped.output.statistics
	copyErr := <-copied
	waitErr := command.Wait()
	report.CPUms = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Milliseconds()
	report.Truncated = stopped.truncated
	switch {
	case copyErr != nil:
		return copyErr
	case stopped.reason != nil:
		return stopped.reason
	case !stopped.asked:
		return fmt.Errorf("tcpdump ended by itself (%s): %s", command.ProcessState, strings.Join(stopped.output.messages, "; "))
	case waitErr != nil:
		return fmt.Errorf("tcpdump failed (%s): %s", command.ProcessState, strings.Join(stopped.output.messages, "; "))
	case !report.complete():
		return errors.New("tcpdump printed no statistics")
	}
	return allWritten(config.PacketsPath, *report.Captured)
}

// allWritten compares the file with tcpdump's count, which still rises when the disk is full.
func allWritten(path string, captured int64) error {
	written, err := countPackets(path)
	if err == nil && written != captured {
		err = fmt.Errorf("%d of %d packets stand in %s; the others could not be written", written, captured, path)
	}
	return err
}

// output is what tcpdump said until it closed its standard error.
type output struct {
	statistics
	messages []string // the first ones, without the statistics and the line that says it listens
}

// messagesMax is more than tcpdump ever says before it gives up.
const messagesMax = 4

// readOutput reads to the end. What tcpdump says when it is asked goes to told, as long as somebody takes it.
func readOutput(messages io.Reader, listening func(), told chan<- statistics) output {
	var out output
	scanner := bufio.NewScanner(messages)
	for scanner.Scan() {
		line := strings.TrimPrefix(scanner.Text(), "tcpdump: ")
		if strings.HasPrefix(line, "listening on ") {
			listening()
			continue
		}
		if soFar, ok := parseSummary(line); ok {
			select {
			case told <- soFar:
			default:
			}
			continue
		}
		if !out.parse(line) && len(out.messages) < messagesMax {
			out.messages = append(out.messages, line)
		}
	}
	return out
}

// ending says how tcpdump ended.
type ending struct {
	output    output
	asked     bool  // by the supervisor
	truncated bool  // because of the file's size
	reason    error // if the supervisor had one of its own
}

// running is a tcpdump at work.
type running struct {
	process *os.Process
	listens chan struct{}   // closed once it does
	told    chan statistics // what it says when it is asked
	read    chan output     // what it said, once it has ended
}

// supervise waits until tcpdump ends, by itself, for the file's size or because the context is done.
func supervise(ctx context.Context, config Config, tcpdump running) ending {
	ticker := time.NewTicker(sizeInterval)
	defer ticker.Stop()
	for {
		select {
		case out := <-tcpdump.read:
			return ending{output: out}
		case <-ctx.Done():
			return settle(config, tcpdump)
		case <-ticker.C:
			info, err := os.Stat(config.PacketsPath)
			if err == nil && info.Size() >= config.BytesMax {
				end := stop(tcpdump)
				end.truncated = true
				if end.reason == nil {
					end.reason = fmt.Errorf("the size limit of %d bytes was reached", config.BytesMax)
				}
				return end
			}
		}
	}
}

// settle stops tcpdump once it has every packet that the kernel keeps for it: tcpdump says so, or time has passed.
func settle(config Config, tcpdump running) ending {
	bound := config.settleMax
	if bound == 0 {
		bound = settleMax
	}
	over := time.After(bound)
	asking := time.NewTicker(askInterval)
	defer asking.Stop()
	for {
		select {
		case out := <-tcpdump.read:
			return ending{output: out}
		case soFar := <-tcpdump.told:
			if soFar.allTaken() {
				return stop(tcpdump)
			}
		case <-asking.C:
			select {
			case <-tcpdump.listens:
				_ = tcpdump.process.Signal(syscall.SIGUSR1)
			default: // the signal would kill it
			}
		case <-over:
			return stop(tcpdump)
		}
	}
}

// stop asks tcpdump to write out what it has and to end.
func stop(tcpdump running) ending {
	end := ending{asked: true}
	if err := tcpdump.process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		end.reason = err
	}
	select {
	case end.output = <-tcpdump.read:
	case <-time.After(patience):
		end.reason = fmt.Errorf("tcpdump did not end within %s and was killed", patience)
		_ = tcpdump.process.Kill()
		end.output = <-tcpdump.read
	}
	return end
}
