// Package kernelevents writes what the kernel itself says of the connections of one network namespace: when each one
// entered and left an accept queue, each retransmission, reset and dropped packet. It runs small BPF programs on the
// kernel's tracepoints (programs.go); the kernel's own types (BTF) say where the fields stand that they read.
package kernelevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"connlab/collector/internal/journal"
)

// Schema names the format of events.jsonl.
const Schema = "connlab.kernel-events/1"

const (
	// The ring holds some 180,000 events.
	ringBytes = 16 << 20
	// How often it is emptied. The programs wake nobody, because that would cost more than the events themselves.
	period = 50 * time.Millisecond
	// Lines are written together.
	batchBytes = 256 << 10
)

// Config says whose events to write, and where to.
type Config struct {
	Role string
	Path string // may not exist
}

// A header is the first line of the file.
type header struct {
	Kind   string `json:"kind"`
	Schema string `json:"schema"`
	Role   string `json:"role"`
	TimeUs int64  `json:"time_us"`
	// Tracepoints are those that the programs run on.
	Tracepoints []string `json:"tracepoints"`
}

// An ending is the last line.
type ending struct {
	Kind   string `json:"kind"`
	TimeUs int64  `json:"time_us"`
	// Reason is "signal", or says why there are no events or no more of them.
	Reason string `json:"reason"`
	Events int64  `json:"events"`
	Lost   int64  `json:"lost"`
	// MissedMax is how many more the file may lack.
	MissedMax int64 `json:"missed_max"`
}

// Run writes events until the context is done. It calls listening once every program runs, or cannot. The file's last
// line says why there are none; Run returns an error only if the file cannot be written.
func Run(ctx context.Context, config Config, listening func(reason error)) error {
	file, err := journal.Create(config.Path)
	if err != nil {
		return err
	}
	programs, reason := Load()
	if reason == nil {
		defer programs.Close()
	}
	names := []string{}
	if programs != nil {
		names = programs.names
	}
	err = writeLine(file.Append, header{
		Kind: "header", Schema: Schema, Role: config.Role, TimeUs: time.Now().UnixMicro(), Tracepoints: names,
	})
	listening(reason)
	last := ending{Kind: "end", Reason: "signal"}
	if err == nil && reason == nil {
		last.Events, err = programs.copy(ctx, file)
		last.Lost, last.MissedMax = programs.lost(), programs.missed()
	}
	if reason == nil {
		reason = err
	}
	if reason != nil {
		last.Reason = "error: " + reason.Error()
	}
	last.TimeUs = time.Now().UnixMicro()
	return errors.Join(err, writeLine(file.AppendLast, last), file.Close())
}

func writeLine(write func([]byte) error, line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return write(append(text, '\n'))
}

// Programs are those that run in the kernel.
type Programs struct {
	names    []string
	programs []*ebpf.Program
	links    []link.Link
	maps     []*ebpf.Map
	reader   *ringbuf.Reader
	lines    lines
}

// Tracepoints are those that the programs run on.
func (p *Programs) Tracepoints() []string { return p.names }

// Load starts the programs for the network namespace of this process. Its error says what the kernel or the rights of
// this process lack.
func Load() (*Programs, error) {
	p := &Programs{}
	if err := p.load(); err != nil {
		p.Close()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("the kernel refuses BPF programs here (they take the capabilities BPF and PERFMON): %w", err)
		}
		return nil, err
	}
	return p, nil
}

func (p *Programs) load() error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("the kernel does not tell its types (/sys/kernel/btf/vmlinux): %w", err)
	}
	kernel := &layout{spec: spec}
	namespace, err := ownNamespace()
	if err != nil {
		return err
	}
	events, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: ringBytes})
	if err != nil {
		return fmt.Errorf("the ring for events: %w", err)
	}
	p.maps = append(p.maps, events)
	lost, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("the count of lost events: %w", err)
	}
	p.maps = append(p.maps, lost)
	for _, point := range tracepoints {
		parameters := kernel.parameters(point.name)
		if parameters == 0 || point.name == "kfree_skb" && parameters < 3 {
			continue // this kernel has no such tracepoint, or it gives no reason
		}
		a := &assembler{layout: kernel, events: events, lost: lost, namespace: namespace, parameters: parameters}
		point.write(a)
		code := a.end()
		if len(kernel.errs) > 0 {
			return errors.Join(kernel.errs...)
		}
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: point.name, Type: ebpf.RawTracepoint, Instructions: code, License: "GPL",
		})
		if err != nil {
			return fmt.Errorf("the program for %s: %w", point.name, err)
		}
		p.programs = append(p.programs, program)
		attached, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: point.name, Program: program})
		if err != nil {
			return fmt.Errorf("the tracepoint %s: %w", point.name, err)
		}
		p.links = append(p.links, attached)
		p.names = append(p.names, point.name)
	}
	p.lines = lines{
		waiting:      map[uint64]uint64{},
		resetReasons: kernel.names("sk_rst_reason", "SK_RST_REASON_"),
		dropReasons:  kernel.names("skb_drop_reason", "SKB_DROP_REASON_"),
	}
	p.reader, err = ringbuf.NewReader(events)
	return err
}

// ownNamespace is the number by which the kernel knows this thread's network namespace.
func ownNamespace() (uint32, error) {
	var of unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &of); err != nil {
		return 0, fmt.Errorf("this process's network namespace: %w", err)
	}
	return uint32(of.Ino), nil
}

// Close ends the programs.
func (p *Programs) Close() {
	if p.reader != nil {
		_ = p.reader.Close()
	}
	for _, attached := range p.links {
		_ = attached.Close()
	}
	for _, program := range p.programs {
		_ = program.Close()
	}
	for _, each := range p.maps {
		_ = each.Close()
	}
}

// copy writes events until the context is done, and then those that have happened before. It returns their number.
func (p *Programs) copy(ctx context.Context, file *journal.File) (int64, error) {
	var (
		taken ringbuf.Record
		text  []byte
		count int64
	)
	for last := false; ; {
		if ctx.Err() != nil {
			last = true
		} else {
			select {
			case <-ctx.Done():
				last = true
			case <-time.After(period):
			}
		}
		p.lines.wall.read()
		p.reader.SetDeadline(time.Now())
		for {
			err := p.reader.ReadInto(&taken)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return count, err
			}
			before := len(text)
			if text = p.lines.append(text, taken.RawSample); len(text) > before {
				count++
			}
			if len(text) < batchBytes {
				continue
			}
			if err := file.Append(text); err != nil {
				return count, err
			}
			text = text[:0]
		}
		if err := file.Append(text); err != nil {
			return count, err
		}
		text = text[:0]
		if last {
			return count, nil
		}
	}
}

// lost counts the events that found no room in the ring.
func (p *Programs) lost() int64 {
	var full uint64
	_ = p.maps[1].Lookup(uint32(0), &full)
	return int64(full)
}

// missed counts how often a program had no turn because it ran already, below an interrupt. It counts for the whole
// machine, so that it only bounds what this namespace's file may lack.
func (p *Programs) missed() int64 {
	var missed int64
	for _, program := range p.programs {
		if statistics, err := program.Stats(); err == nil {
			missed += int64(statistics.RecursionMisses)
		}
	}
	return missed
}
