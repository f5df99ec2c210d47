package link

import (
	"container/heap"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// mark is on the packets that a link lets go, so that it does not get them again.
const mark = 0x43

// A sender lets packets go when they are due. The original of each was dropped as soon as it had been copied, so that its
// socket takes it for sent, as it does with netem: TCP has only a few packets of a connection on the way to a device.
type sender struct {
	socket int
	wake   int // an eventfd
	begun  time.Time

	mutex   sync.Mutex
	waiting queue
	count   uint64
	closed  bool
}

type held struct {
	due    time.Duration
	number uint64 // those that are due together keep their order
	raw    []byte
	to     [4]byte
	gate   *counted
}

// counted is a gate with what its sender counts.
type counted struct {
	*gate
	late    int64
	lateMax time.Duration
}

// lateness that counts.
const tooLate = time.Millisecond

func newSender() (*sender, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("a raw socket: %w", err)
	}
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		return nil, errors.Join(fmt.Errorf("SO_MARK: %w", err), unix.Close(socket))
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(socket))
	}
	return &sender{socket: socket, wake: wake, begun: time.Now()}, nil
}

// now is the time since the sender began, by the monotonic clock.
func (s *sender) now() time.Duration { return time.Since(s.begun) }

// take lets a link's gate decide about a packet, whose bytes it keeps.
func (s *sender) take(g *counted, raw []byte) {
	p := parsePacket(raw)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	verdict, due := g.take(s.now(), p)
	if verdict == reset {
		s.send(resetFor(p), p.from.Addr().As4())
	}
	if verdict != pass {
		return
	}
	s.count++
	heap.Push(&s.waiting, held{due: due, number: s.count, raw: raw, to: p.to.Addr().As4(), gate: g})
	if s.waiting[0].number == s.count {
		s.rouse()
	}
}

func (s *sender) rouse() { _, _ = unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// send ignores what the kernel says: a link loses a packet that cannot be sent, as any device does.
func (s *sender) send(raw []byte, to [4]byte) {
	_ = unix.Sendto(s.socket, raw, 0, &unix.SockaddrInet4{Addr: to})
}

// run sends until close.
func (s *sender) run() error {
	// Go's own timers are good to a millisecond; this thread's are good to 50 µs, and to a nanosecond without slack.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	// Where the machine allows it, other programs do not delay the packets.
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20)
	events := []unix.PollFd{{Fd: int32(s.wake), Events: unix.POLLIN}}
	var count [8]byte
	for {
		wait, closed := s.sendDue()
		if closed {
			return nil
		}
		var timeout *unix.Timespec
		if wait >= 0 {
			t := unix.NsecToTimespec(wait.Nanoseconds())
			timeout = &t
		}
		n, err := unix.Ppoll(events, timeout, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("ppoll: %w", err)
		}
		if n > 0 {
			_, _ = unix.Read(s.wake, count[:])
		}
	}
}

// sendDue sends what is due, and says how long the next one has to wait; -1 if there is none.
func (s *sender) sendDue() (wait time.Duration, closed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for len(s.waiting) > 0 && !s.closed {
		now := s.now()
		if left := s.waiting[0].due - now; left > 0 {
			return left, false
		}
		next := heap.Pop(&s.waiting).(held)
		s.send(next.raw, next.to)
		next.gate.leave()
		if late := now - next.due; late > tooLate {
			next.gate.late++
			next.gate.lateMax = max(next.gate.lateMax, late)
		}
	}
	return -1, s.closed
}

func (s *sender) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed = true
	s.rouse()
}

// A queue is a heap by the time at which packets are due.
type queue []held

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].due < q[j].due || q[i].due == q[j].due && q[i].number < q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(held)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = held{}
	*q = (*q)[:last]
	return x
}
