package netns

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// The two ends of the veth pair between this process's namespace and its peer's; each end is an interface called eth0.
const (
	Address         = "10.99.0.1"
	AddressIPv6     = "fd99::1"
	PeerAddress     = "10.99.0.2"
	peerAddressIPv6 = "fd99::2"
)

// The first thread stands for the whole process under /proc, so that no peer may take it: it stays with the main
// goroutine.
func init() { runtime.LockOSThread() }

// A Peer is a second network namespace, connected with that of the process: to TCP it is another host.
type Peer struct {
	work chan func()
}

// NewPeer makes the namespace and the veth pair. Further addresses of the peer's end may follow.
func NewPeer(addresses ...string) (*Peer, error) {
	p := &Peer{work: make(chan func())}
	made := make(chan error)
	go func() {
		// The thread is not given back: it ends with this goroutine, and its namespace with the last socket in it.
		runtime.LockOSThread()
		made <- makePeer(addresses)
		for work := range p.work {
			work()
		}
	}()
	return p, <-made
}

// Do runs work on a thread inside the peer's namespace. A socket that is made there stays there for good.
func (p *Peer) Do(work func()) {
	done := make(chan struct{})
	p.work <- func() {
		defer close(done)
		work()
	}
	<-done
}

// Close gives the namespace up.
func (p *Peer) Close() {
	// The kernel takes the link away some time after the namespace, and the next one has the same name.
	p.Do(func() { _ = exec.Command("ip", "link", "del", "eth0").Run() })
	close(p.work)
}

// makePeer moves the calling thread into a new namespace and connects it.
func makePeer(addresses []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	here := fmt.Sprintf("--net=/proc/%d/ns/net", os.Getpid())
	commands := [][]string{
		{"ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(os.Getpid())},
		{"ip", "link", "set", "eth0", "up"},
		{"ip", "address", "add", PeerAddress + "/24", "dev", "eth0"},
		{"ip", "address", "add", peerAddressIPv6 + "/64", "dev", "eth0", "nodad"},
		{"nsenter", here, "ip", "link", "set", "eth0", "up"},
		{"nsenter", here, "ip", "address", "add", Address + "/24", "dev", "eth0"},
		{"nsenter", here, "ip", "address", "add", AddressIPv6 + "/64", "dev", "eth0", "nodad"},
	}
	for _, address := range addresses {
		commands = append(commands, []string{"ip", "address", "add", address + "/24", "dev", "eth0"})
	}
	for _, command := range commands {
		// A child shares the namespace of the thread that starts it.
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", command, err, output)
		}
	}
	return nil
}
