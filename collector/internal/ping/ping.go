// Package ping measures the way to a peer and back by ICMP echoes, which the peer's kernel answers.
package ping

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	echoReply, echoRequest = 0, 8
	echoBytes              = 64 // with the header, as ping(8) sends them
	headerBytes            = 8
	// slack of the thread that sends; Go's own timers are good to a millisecond.
	slackNs = 1
)

// A Result has round trips in microseconds; none if there was no answer.
type Result struct {
	Sent     int      `json:"sent"`
	Received int      `json:"received"`
	MinUs    *float64 `json:"min_us"`
	P50Us    *float64 `json:"p50_us"`
	P99Us    *float64 `json:"p99_us"`
	MaxUs    *float64 `json:"max_us"`
}

// Measure sends echoes in even steps, and waits for the answers until the last one had time enough.
func Measure(ctx context.Context, to netip.Addr, count int, every, patience time.Duration) (_ Result, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return Result{}, fmt.Errorf("a socket for ICMP: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	address := &unix.SockaddrInet4{Addr: to.As4()}
	if err := unix.Connect(fd, address); err != nil {
		return Result{}, err
	}
	// The kernel says when an answer came, whenever this process gets to read it.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return Result{}, err
	}
	for _, option := range []int{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 8<<20) == nil {
			break
		}
	}
	m := &measurement{fd: fd, identifier: uint16(unix.Getpid()), sent: make([]int64, count), trips: make([]float64, count)}
	m.all = make(chan struct{})
	received := make(chan error, 1)
	go func() { received <- m.receive() }()
	if err := m.send(ctx, every); err != nil {
		return Result{}, errors.Join(err, m.stop(received))
	}
	select {
	case <-time.After(patience):
	case <-m.all:
	case <-ctx.Done():
	}
	if err := m.stop(received); err != nil {
		return Result{}, err
	}
	return m.result(), nil
}

type measurement struct {
	fd         int
	identifier uint16

	mutex sync.Mutex
	sent  []int64 // when, by the clock that the kernel stamps packets with; 0 for what was not sent
	trips []float64
	got   int
	done  bool
	all   chan struct{} // closed with the last answer
}

func (m *measurement) send(ctx context.Context, every time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, slackNs, 0, 0, 0); err != nil {
		return err
	}
	begun := time.Now()
	for number := range m.sent {
		if ctx.Err() != nil {
			return nil
		}
		if wait := time.Until(begun.Add(time.Duration(number) * every)); wait > 0 {
			t := unix.NsecToTimespec(wait.Nanoseconds())
			_ = unix.Nanosleep(&t, nil)
		}
		message := m.echo(uint16(number))
		m.mutex.Lock()
		m.sent[number] = time.Now().UnixNano()
		m.mutex.Unlock()
		// A link whose queue is full says so to who sends: that echo is lost, as others are on the way.
		if _, err := unix.Write(m.fd, message); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("sending an echo: %w", err)
		}
	}
	return nil
}

func (m *measurement) echo(number uint16) []byte {
	message := make([]byte, echoBytes)
	message[0] = echoRequest
	binary.BigEndian.PutUint16(message[4:], m.identifier)
	binary.BigEndian.PutUint16(message[6:], number)
	var sum uint32
	for i := 0; i < len(message); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(message[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(message[2:], ^uint16(sum))
	return message
}

func (m *measurement) receive() error {
	packet, control := make([]byte, 2048), make([]byte, 256)
	// It looks every so often whether it is to end.
	timeout := unix.NsecToTimeval((20 * time.Millisecond).Nanoseconds())
	if err := unix.SetsockoptTimeval(m.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	for {
		n, controlBytes, _, _, err := unix.Recvmsg(m.fd, packet, control, 0)
		m.mutex.Lock()
		done := m.done
		m.mutex.Unlock()
		switch {
		case done:
			return nil
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("receiving echoes: %w", err)
		default:
			m.note(packet[:n], stamp(control[:controlBytes]))
		}
	}
}

// stamp is when the kernel received a packet; now, if it does not say so.
func stamp(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	for _, message := range messages {
		if err == nil && message.Header.Level == unix.SOL_SOCKET && message.Header.Type == unix.SO_TIMESTAMPNS && len(message.Data) >= 16 {
			seconds := int64(binary.NativeEndian.Uint64(message.Data))
			return seconds*1e9 + int64(binary.NativeEndian.Uint64(message.Data[8:]))
		}
	}
	return time.Now().UnixNano()
}

// note takes in an answer; the socket has the IP header before it, and gets those of other processes too.
func (m *measurement) note(raw []byte, at int64) {
	if len(raw) < 20 || len(raw) < int(raw[0]&0xf)*4+headerBytes {
		return
	}
	message := raw[int(raw[0]&0xf)*4:]
	number := int(binary.BigEndian.Uint16(message[6:]))
	if message[0] != echoReply || binary.BigEndian.Uint16(message[4:]) != m.identifier || number >= len(m.sent) {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.sent[number] != 0 && m.trips[number] == 0 {
		m.trips[number] = float64(at-m.sent[number]) / 1000
		if m.got++; m.got == len(m.sent) {
			close(m.all)
		}
	}
}

func (m *measurement) stop(received <-chan error) error {
	m.mutex.Lock()
	m.done = true
	m.mutex.Unlock()
	return <-received
}

func (m *measurement) result() Result {
	var result Result
	var trips []float64
	for number, at := range m.sent {
		if at != 0 {
			result.Sent++
		}
		if m.trips[number] != 0 {
			trips = append(trips, m.trips[number])
		}
	}
	result.Received = len(trips)
	if len(trips) > 0 {
		slices.Sort(trips)
		at := func(share float64) *float64 { return &trips[int(share*float64(len(trips)-1)+0.5)] }
		result.MinUs, result.P50Us, result.P99Us, result.MaxUs = at(0), at(0.5), at(0.99), at(1)
	}
	return result
}
