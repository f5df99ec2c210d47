// Package sampler records, many times a second, what the kernel counts in one network namespace and what the role's
// processes use, as lines of samples.jsonl (docs/data-format.md). It starts no process and, between two dumps of
// sockets, makes no garbage: at the default rate it must stay below one hundredth of a core.
package sampler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/journal"
	"connlab/collector/internal/latest"
	"connlab/collector/internal/management"
	"connlab/collector/internal/procfs"
	"connlab/collector/internal/sockdiag"
)

// Schema names the format of samples.jsonl.
const Schema = "connlab.samples/1"

// ErrStopped as the cause of a cancelled context says that the sampler was asked to stop; any other cause is an error
// that ends the recording.
var ErrStopped = errors.New("stopped by a signal")

// Seconds between two lines of a kind. The sampler asks for TIME_WAIT rarely, because 28,000 sockets cost some 7 ms;
// each tick has their total anyway (sockstat.TCP.tw).
const (
	secondsFull      = 10
	secondsSockets   = 1
	secondsTimeWait  = 5
	secondsProcesses = 1
	secondsSelf      = 1
)

// Config says what to record and where.
type Config struct {
	Role   string
	RateHz int
	// Path is the file to create.
	Path string
	// ProcRoot is /proc except in tests.
	ProcRoot string
	// Everything says that no port in the namespace is the lab's own.
	Everything bool
	// Latest keeps what was read last, for the metrics port; nil if there is none.
	Latest *latest.Holder
	// MetricsPort is the collector's own; listeners and sockets leave it out; 0 if there is none.
	MetricsPort uint16
	// MetricsConnections returns how many connections that port has taken from outside the namespace; nil if there is
	// no such port.
	MetricsConnections func() int64
}

// A Sampler records one network namespace and one process namespace: those it was opened in.
type Sampler struct {
	config   Config
	units    procfs.Units
	deltas   *deltas
	diag     *sockdiag.Conn
	procs    *procfs.Reader
	journal  *journal.File
	schedule schedule

	full, sockets, timeWait, processes, self cadence

	// Space used again by each tick.
	line                 []byte
	listeners            []sockdiag.Listener
	unixListeners        []sockdiag.UnixListener
	unaccepted           []sockdiag.Socket
	connections, waiting dump
	tally                *sockdiag.Tally
	procList             []procfs.Process
}

// Open opens all that is read and creates the file. On an error nothing stays open.
func Open(config Config) (*Sampler, error) {
	s := &Sampler{config: config, tally: sockdiag.NewTally(config.Everything, config.MetricsPort)}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	hz := int64(config.RateHz)
	s.schedule.period = time.Second / time.Duration(hz)
	s.full = cadence{every: secondsFull * hz}
	// Lines that come once a second are spread over the second, so that no tick has to write all of them.
	s.sockets = cadence{every: secondsSockets * hz}
	s.timeWait = cadence{every: secondsTimeWait * hz}
	s.processes = cadence{every: secondsProcesses * hz, next: hz / 2}
	s.self = cadence{every: secondsSelf * hz, next: hz * 3 / 4}
	return s, nil
}

func (s *Sampler) open() (err error) {
	if s.units, err = procfs.KernelUnits(); err != nil {
		return err
	}
	if s.deltas, err = openDeltas(filepath.Join(s.config.ProcRoot, "net")); err != nil {
		return err
	}
	if s.procs, err = procfs.Open(s.config.ProcRoot, s.units); err != nil {
		return err
	}
	if s.diag, err = sockdiag.Dial(); err != nil {
		return err
	}
	s.journal, err = journal.Create(s.config.Path)
	return err
}

func (s *Sampler) close() error {
	var errs []error
	if s.deltas != nil {
		errs = append(errs, s.deltas.close())
	}
	if s.diag != nil {
		errs = append(errs, s.diag.Close())
	}
	if s.journal != nil {
		errs = append(errs, s.journal.Close())
	}
	return errors.Join(errs...)
}

// Run samples until the context is done, then takes a last sample of everything and writes the line that says how
// the recording ended. It calls started once the first tick is in the file. It returns the sampler's own error only:
// the context's cause goes into the last line, not to the caller.
func (s *Sampler) Run(ctx context.Context, started func()) error {
	err := s.record(ctx, started)
	reason := "signal"
	switch cause := context.Cause(ctx); {
	case err != nil:
		reason = "error: " + err.Error()
	case !errors.Is(cause, ErrStopped):
		reason = "error: " + cause.Error()
	}
	return errors.Join(err, s.finish(reason), s.close())
}

// record writes the header, the ticks and, when asked to stop, the last tick.
func (s *Sampler) record(ctx context.Context, started func()) error {
	if err := s.writeHeader(); err != nil {
		return err
	}
	s.schedule.start = time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.lastTick()
		case <-timer.C:
		}
		now := time.Now()
		tick, late := s.schedule.arrive(now)
		err := s.sample(now, late, due{
			full:      s.full.due(tick),
			sockets:   s.sockets.due(tick),
			timeWait:  s.timeWait.due(tick),
			processes: s.processes.due(tick),
			self:      s.self.due(tick),
		})
		if err != nil {
			return err
		}
		if s.schedule.ticks == 1 {
			started()
		}
		timer.Reset(time.Until(s.schedule.deadline()))
	}
}

// lastTick samples everything once more, outside the schedule.
func (s *Sampler) lastTick() error {
	s.schedule.ticks++
	return s.sample(time.Now(), 0, due{full: true, sockets: true, timeWait: true, processes: true, self: true})
}

// due says which lines a tick brings besides its own.
type due struct {
	full, sockets, timeWait, processes, self bool
}

// sample writes all lines of one tick at once, so that a line is in the file as soon as its tick is over.
func (s *Sampler) sample(now time.Time, late time.Duration, due due) error {
	s.line = s.line[:0]
	if err := s.appendTick(now, late, due.full); err != nil {
		return err
	}
	if due.sockets {
		if err := s.appendSockets(due.timeWait); err != nil {
			return err
		}
	}
	if due.processes {
		if err := s.appendProcesses(); err != nil {
			return err
		}
	}
	if due.self {
		s.appendSelf()
	}
	if err := s.journal.Append(s.line); err != nil {
		return err
	}
	s.publish(now, late, due)
	return nil
}

// publish hands over what the file has by now.
func (s *Sampler) publish(now time.Time, late time.Duration, due due) {
	if s.config.Latest == nil {
		return
	}
	if due.sockets {
		groups := s.connections.groups
		if due.timeWait {
			groups = slices.Concat(groups, s.waiting.groups)
		}
		s.config.Latest.Groups(groups, due.timeWait)
	}
	if due.processes {
		s.config.Latest.Processes(s.procList)
	}
	s.config.Latest.Tick(now, s.deltas.tables, s.listeners, latest.Sampler{
		Ticks: s.schedule.ticks, LateTicks: s.schedule.lateTicks, Gaps: s.schedule.gaps,
		Late: late, LateMax: s.schedule.lateMax, CPU: cpuTime(),
	})
}

func (s *Sampler) writeHeader() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("uname: %w", err)
	}
	line, err := appendStructure(nil, header{
		Kind: "header", Schema: Schema, Role: s.config.Role, RateHz: s.config.RateHz, TimeUs: time.Now().UnixMicro(),
		Kernel: unix.ByteSliceToString(name.Release[:]), Hz: s.units.TicksPerSecond, PageBytes: s.units.PageBytes,
		CPUs: runtime.NumCPU(),
	})
	if err != nil {
		return err
	}
	return s.journal.Append(line)
}

func (s *Sampler) appendTick(now time.Time, late time.Duration, full bool) error {
	began := cpuTime()
	monotonic := clock(unix.CLOCK_MONOTONIC)
	if err := s.deltas.read(); err != nil {
		return err
	}
	var err error
	if s.listeners, err = s.diag.Listeners(s.listeners[:0]); err != nil {
		return err
	}
	s.tally.Listens(s.listeners)
	s.listeners = slices.DeleteFunc(s.listeners, s.isOwn)
	if s.unixListeners, err = s.diag.UnixListeners(s.unixListeners[:0]); err != nil {
		return err
	}
	host, err := s.procs.Host()
	if err != nil {
		return err
	}

	s.line = appendStart(s.line, "tick", now)
	s.line = appendInt(s.line, `,"mono_us":`, monotonic.Microseconds())
	s.line = appendInt(s.line, `,"late_us":`, late.Microseconds())
	if full {
		s.line = append(s.line, `,"full":true`...)
	}
	if s.config.MetricsConnections != nil {
		s.line = appendInt(s.line, `,"metrics_connections":`, s.config.MetricsConnections())
	}
	s.line = appendHost(s.line, host)
	s.line = append(s.line, `,"counters":{`...)
	s.line = s.deltas.appendTo(s.line, full)
	s.line = append(s.line, `},"listen":[`...)
	s.line = appendListeners(s.line, s.listeners)
	s.line = append(s.line, ']')
	s.line = appendUnixListeners(s.line, s.unixListeners, full)
	s.appendCost("", began)
	return nil
}

// isOwn says whether a listener is the lab's.
func (s *Sampler) isOwn(l sockdiag.Listener) bool {
	if s.config.MetricsPort != 0 && l.Port == s.config.MetricsPort {
		return true
	}
	return !s.config.Everything && management.IsPort(l.Port)
}

// appendSockets writes a line of sockets and, if asked to, one of TIME_WAIT. One dump serves both, because the kernel's
// walk over all its sockets is the expensive part; its cost is in the first line. Where no socket can have changed its
// state since the last dump, it still holds, and the kernel is not asked. That a program accepts a connection is no
// change of its state, so while any wait the kernel is asked each time.
func (s *Sampler) appendSockets(withTimeWait bool) error {
	began := cpuTime()
	now := time.Now()
	if s.areWaiting() || !s.connections.holds(s) || withTimeWait && !s.waiting.holds(s) {
		if err := s.dump(withTimeWait); err != nil {
			return err
		}
	}
	s.line = appendStart(s.line, "sockets", now)
	s.line = append(s.line, `,"groups":[`...)
	s.line = appendGroups(s.line, s.connections.groups, false)
	s.line = append(s.line, ']')
	s.line = appendUnaccepted(s.line, s.unaccepted)
	s.appendCost("", began)
	if withTimeWait {
		began = cpuTime()
		s.line = appendStart(s.line, "time_wait", now)
		s.line = append(s.line, `,"groups":[`...)
		s.line = appendGroups(s.line, s.waiting.groups, true)
		s.appendCost("]", began)
	}
	return nil
}

// areWaiting says whether connections wait to be accepted, or did at the last dump.
func (s *Sampler) areWaiting() bool {
	return len(s.unaccepted) > 0 || slices.ContainsFunc(s.listeners, func(l sockdiag.Listener) bool { return l.Depth > 0 })
}

// dump asks the kernel for the sockets.
func (s *Sampler) dump(withTimeWait bool) error {
	states := sockdiag.Connections
	if withTimeWait {
		states |= sockdiag.TimeWaiting
	}
	if err := s.diag.Sockets(states, s.tally.Add); err != nil {
		return err
	}
	open, waiting := s.connections.groups[:0], s.waiting.groups[:0]
	for _, g := range s.tally.Take() {
		if g.State == sockdiag.TimeWait {
			waiting = append(waiting, g)
		} else {
			open = append(open, g)
		}
	}
	s.unaccepted = s.tally.TakeUnaccepted()
	s.connections.take(s, open)
	if withTimeWait {
		s.waiting.take(s, waiting)
	}
	return nil
}

// A dump is what the kernel last said of some sockets. The counters were read before it: what changed between the two
// shows in the next reading of the counters.
type dump struct {
	groups []sockdiag.Group
	moves  int64 // so many the counters knew then; 0 before the first dump, and never after a tick
	ports  int
}

func (d *dump) take(s *Sampler, groups []sockdiag.Group) {
	d.groups, d.moves, d.ports = groups, s.deltas.moves, s.tally.Ports()
}

// holds says whether the kernel would still say the same. It counts nothing as it gives up a half-open connection, and a
// port that listens anew makes connections a server's.
func (d *dump) holds(s *Sampler) bool {
	halfOpen := func(g sockdiag.Group) bool { return g.State == sockdiag.SynRecv }
	return d.moves == s.deltas.moves && d.ports == s.tally.Ports() && !slices.ContainsFunc(d.groups, halfOpen)
}

func (s *Sampler) appendProcesses() error {
	began := cpuTime()
	now := time.Now()
	var err error
	if s.procList, err = s.procs.Processes(s.procList[:0]); err != nil {
		return err
	}
	host, err := s.procs.Host()
	if err != nil {
		return err
	}
	s.line = appendStart(s.line, "processes", now)
	s.line = append(s.line, `,"processes":[`...)
	s.line = appendProcesses(s.line, s.procList)
	s.line = append(s.line, ']')
	s.line = appendHost(s.line, host)
	s.appendCost("", began)
	return nil
}

func (s *Sampler) appendSelf() {
	s.line = appendStart(s.line, "self", time.Now())
	s.line = appendInt(s.line, `,"cpu_ms":`, cpuTime().Milliseconds())
	s.line = appendInt(s.line, `,"ticks":`, s.schedule.ticks)
	s.line = appendInt(s.line, `,"late_ticks":`, s.schedule.lateTicks)
	s.line = appendInt(s.line, `,"gaps":`, s.schedule.gaps)
	s.line = appendInt(s.line, `,"late_us_max":`, s.schedule.lateMax.Microseconds())
	s.line = append(s.line, "}\n"...)
}

// appendCost ends a line: it closes the member before with the given bracket and adds the CPU time since began.
func (s *Sampler) appendCost(bracket string, began time.Duration) {
	s.line = append(s.line, bracket...)
	s.line = appendInt(s.line, `,"cost_us":`, (cpuTime() - began).Microseconds())
	s.line = append(s.line, "}\n"...)
}

// finish writes the last line into reserved room, so that it fits even on a full disk.
func (s *Sampler) finish(reason string) error {
	line, err := appendStructure(nil, end{
		Kind: "end", TimeUs: time.Now().UnixMicro(), Reason: reason, Ticks: s.schedule.ticks,
		LateTicks: s.schedule.lateTicks, Gaps: s.schedule.gaps, LateUsMax: s.schedule.lateMax.Microseconds(),
		CPUms: cpuTime().Milliseconds(),
	})
	if err != nil {
		return err
	}
	return s.journal.AppendLast(line)
}

// cpuTime is what this whole process has used so far, in user and in system mode.
func cpuTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	// Every Linux has both clocks, so no error can come back.
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}
