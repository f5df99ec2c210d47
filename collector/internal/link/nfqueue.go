package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	nfqueue "github.com/florianl/go-nfqueue/v2"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// packetBytesMax is the longest IP packet. Without nfqueue's flag GSO the kernel splits longer ones first.
	packetBytesMax = 65535
	// unread is how many packets the kernel keeps for the process, at most.
	unread       = 65535
	receiveBytes = 16 << 20
	// clientPatience is how long one client may keep the others from asking.
	clientPatience = 5 * time.Second
	queuesFile     = "/proc/net/netfilter/nfnetlink_queue"
)

// A holder holds the packets of all links of a namespace.
type holder struct {
	sender *sender
	gates  []*counted
	queues []*nfqueue.Nfqueue
}

// rule is what leads a link's packets into its queue, and leaves them alone while nobody reads it.
func rule(action, device, address string, number int) []string {
	return []string{"-w", "-t", "mangle", action, "POSTROUTING", "-o", device, "-d", address, "-m", "mark", "!", "--mark",
		strconv.Itoa(mark), "-j", "NFQUEUE", "--queue-num", strconv.Itoa(number), "--queue-bypass"}
}

func openHolder(ctx context.Context, device string, all []Settings, complain func(error)) (*holder, error) {
	sender, err := newSender()
	if err != nil {
		return nil, err
	}
	h := &holder{sender: sender}
	for index, settings := range all {
		g := &counted{gate: newGate(settings, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))}
		if err := h.open(ctx, index+1, g, complain); err != nil {
			return nil, fmt.Errorf("NFQUEUE %d: %w", index+1, err)
		}
		for _, address := range settings.Addresses {
			if _, err := tool("iptables", rule("-A", device, address.String(), index+1)...); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

func (h *holder) open(ctx context.Context, number int, g *counted, complain func(error)) error {
	queue, err := nfqueue.Open(&nfqueue.Config{
		NfQueue: uint16(number), MaxPacketLen: packetBytesMax, MaxQueueLen: unread, Copymode: nfqueue.NfQnlCopyPacket,
	})
	if err != nil {
		return err
	}
	h.queues, h.gates = append(h.queues, queue), append(h.gates, g)
	// A packet that finds no room is counted by the kernel, and the report has it.
	if err := queue.SetOption(netlink.NoENOBUFS, true); err != nil {
		return err
	}
	if err := setReceiveBuffer(queue.Con); err != nil {
		return err
	}
	return queue.RegisterWithErrorFunc(ctx, func(a nfqueue.Attribute) int {
		if a.PacketID == nil || a.Payload == nil {
			return 0
		}
		// The copy goes on its way; the original has done its part.
		if err := queue.SetVerdict(*a.PacketID, nfqueue.NfDrop); err != nil {
			complain(err)
		}
		h.sender.take(g, *a.Payload)
		return 0
	}, func(err error) int {
		if ctx.Err() != nil {
			return 1
		}
		complain(err)
		return 0
	})
}

func setReceiveBuffer(connection *netlink.Conn) error {
	raw, err := connection.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		// Beyond the system's limit, which NET_ADMIN allows.
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBytes)
	})
	return errors.Join(err, refused)
}

// change gives each link other settings; they are those of the same links, in the same order.
func (h *holder) change(all []Settings) error {
	if len(all) != len(h.gates) {
		return fmt.Errorf("%d settings for %d links", len(all), len(h.gates))
	}
	h.sender.mutex.Lock()
	defer h.sender.mutex.Unlock()
	for index, g := range h.gates {
		if all[index].To != g.settings.To || !slices.Equal(all[index].Addresses, g.settings.Addresses) {
			return fmt.Errorf("link %d leads to %s, and not to %s", index+1, g.settings.To, all[index].To)
		}
	}
	for index, g := range h.gates {
		g.settings = all[index]
	}
	return nil
}

// answer takes new settings from a client, if it has any, and tells it how the links are. A client whose settings do not
// fit gets no answer.
func (h *holder) answer(client net.Conn) error {
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(clientPatience)); err != nil {
		return err
	}
	text, err := io.ReadAll(client)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		all, err := Parse(string(text))
		if err == nil {
			err = h.change(all)
		}
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(client).Encode(h.report())
}

func (h *holder) report() Report {
	unqueued := readUnqueued(queuesFile)
	h.sender.mutex.Lock()
	defer h.sender.mutex.Unlock()
	report := Report{Way: NFQueue}
	for index, g := range h.gates {
		late, lateMax := g.late, g.lateMax.Microseconds()
		state := State{Settings: g.settings, Packets: g.packets, Lost: g.lost, Late: &late, LateMaxUs: &lateMax}
		if dropped, found := unqueued[index+1]; found {
			state.Unqueued = &dropped
		}
		report.Links = append(report.Links, state)
	}
	return report
}

// readUnqueued gives, by queue, the packets that the kernel dropped since nobody took them: the file's sixth and seventh
// column (net/netfilter/nfnetlink_queue.c, seq_show).
func readUnqueued(path string) map[int]int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	dropped := map[int]int64{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 7 {
			continue
		}
		number, err1 := strconv.Atoi(fields[0])
		full, err2 := strconv.ParseInt(fields[5], 10, 64)
		unsent, err3 := strconv.ParseInt(fields[6], 10, 64)
		if errors.Join(err1, err2, err3) == nil {
			dropped[number] = full + unsent
		}
	}
	return dropped
}

// Serve holds the packets of the links, and tells everybody who connects to the socket how they are, until the context
// ends. It calls ready once all is set.
func Serve(ctx context.Context, device, socket string, all []Settings, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	complain := func(err error) { fmt.Fprintf(os.Stderr, "collector: link: %s\n", err) }
	h, err := openHolder(ctx, device, all, complain)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				cancel()
				return
			}
			if err := h.answer(client); err != nil {
				complain(err)
			}
		}
	}()
	context.AfterFunc(ctx, func() {
		_ = listener.Close()
		h.sender.close()
	})
	ready()
	return h.sender.run()
}
