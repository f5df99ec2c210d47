// Package flowtest makes packet captures for the tests and the benchmark of the
// flow reducer: connections scripted segment by segment or made at random, in
// every format, link type and IP version that the reducer reads.
package flowtest

import (
	"net/netip"
	"slices"

	"connlab/collector/internal/packet"
)

// Segment is a TCP segment on the wire.
type Segment struct {
	TimeNs   int64
	From, To netip.AddrPort
	Seq, Ack uint32
	Flags    packet.Flags
	Window   uint16
	Payload  int    // bytes of data
	Start    string // what the data begins with
}

// Ends of a conversation.
const (
	Client = 0
	Server = 1
)

// Starts of records of TLS.
const (
	ClientHello       = "\x16\x03\x01\x02\x00\x01"
	ServerHello       = "\x16\x03\x03\x00\x7a\x02"
	ClientKeyExchange = "\x16\x03\x03\x00\x46\x10"
	NewSessionTicket  = "\x16\x03\x03\x00\xca\x04"
	ChangeCipherSpec  = "\x14\x03\x03\x00\x01\x01"
	EncryptedData     = "\x17\x03\x03\x00\x45\x9f"
	HandshakeFailure  = "\x15\x03\x03\x00\x02\x02"
)

// StartNs is when conversations begin: 2025-01-01T00:00:00.000123456Z.
const StartNs = 1735689600_000123456

// Conversation scripts one TCP connection. Each method sends a segment that the
// other end gets; Lose and Hide change what the last one met with.
type Conversation struct {
	Ends     [2]netip.AddrPort
	NowNs    int64
	Segments []Segment

	next  [2]uint32 // sequence number of each end's next byte
	acks  [2]uint32 // what each end acknowledges
	heard [2]bool   // whether each end has anything to acknowledge
	jumps int       // of nextAtRandom
}

// NewConversation returns a conversation between two addresses ("host:port")
// whose ends begin with the given initial sequence numbers.
func NewConversation(client, server string, clientISN, serverISN uint32) *Conversation {
	return &Conversation{
		Ends:  [2]netip.AddrPort{netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)},
		NowNs: StartNs,
		next:  [2]uint32{clientISN, serverISN},
	}
}

// Wait lets time pass, in microseconds.
func (c *Conversation) Wait(us int64) *Conversation {
	c.NowNs += us * 1000
	return c
}

// Send sends a segment, a microsecond after the last one.
func (c *Conversation) Send(from int, flags packet.Flags, payload int) *Conversation {
	c.Wait(1)
	to := 1 - from
	s := Segment{
		TimeNs: c.NowNs, From: c.Ends[from], To: c.Ends[to],
		Seq: c.next[from], Flags: flags, Window: 502, Payload: payload,
	}
	if flags.Has(packet.ACK) {
		s.Ack = c.acks[from]
	}
	c.next[from] += uint32(payload)
	if flags.Has(packet.SYN | packet.FIN) {
		c.next[from]++
	}
	c.acks[to], c.heard[to] = c.next[from], true
	c.Segments = append(c.Segments, s)
	return c
}

// SYN sends the client's SYN.
func (c *Conversation) SYN() *Conversation { return c.Send(Client, packet.SYN, 0) }

// SYNACK sends the server's answer.
func (c *Conversation) SYNACK() *Conversation { return c.Send(Server, packet.SYN|packet.ACK, 0) }

// ACK sends a bare acknowledgement.
func (c *Conversation) ACK(from int) *Conversation { return c.Send(from, packet.ACK, 0) }

// Data sends bytes.
func (c *Conversation) Data(from, bytes int) *Conversation {
	return c.Send(from, packet.PSH|packet.ACK, bytes)
}

// Record sends the start of a record of TLS.
func (c *Conversation) Record(from int, start string) *Conversation {
	c.Data(from, 200).last().Start = start
	return c
}

// FIN closes one direction.
func (c *Conversation) FIN(from int) *Conversation { return c.Send(from, packet.FIN|packet.ACK, 0) }

// RST aborts.
func (c *Conversation) RST(from int) *Conversation {
	c.Send(from, packet.RST|packet.ACK, 0)
	if !c.heard[from] {
		c.last().Flags, c.last().Ack = packet.RST, 0
	}
	return c
}

// Open does the whole handshake.
func (c *Conversation) Open() *Conversation { return c.SYN().SYNACK().ACK(Client) }

// Close closes from one end first, as two well-behaved ends do.
func (c *Conversation) Close(first int) *Conversation {
	return c.FIN(first).ACK(1 - first).FIN(1 - first).ACK(first)
}

// Again sends the last segment that an end sent once more.
func (c *Conversation) Again(from int) *Conversation {
	for _, s := range slices.Backward(c.Segments) {
		if s.From == c.Ends[from] {
			c.Wait(1)
			s.TimeNs = c.NowNs
			c.Segments = append(c.Segments, s)
			return c
		}
	}
	panic("flowtest: nothing was sent yet")
}

// Lose makes the last segment, which the capture has, miss the other end.
func (c *Conversation) Lose() *Conversation {
	s := c.last()
	to := Server
	if s.From == c.Ends[Server] {
		to = Client
	}
	c.acks[to] = s.Seq
	return c
}

// Hide takes the last segment out of the capture, though it was sent.
func (c *Conversation) Hide() *Conversation {
	c.Segments = c.Segments[:len(c.Segments)-1]
	return c
}

// Swap puts the last two segments into the capture the other way round, each
// with the other's time.
func (c *Conversation) Swap() *Conversation {
	s := c.Segments[len(c.Segments)-2:]
	s[0], s[1] = s[1], s[0]
	s[0].TimeNs, s[1].TimeNs = s[1].TimeNs, s[0].TimeNs
	return c
}

// Next begins another connection between the same ends.
func (c *Conversation) Next(clientISN, serverISN uint32) *Conversation {
	c.next = [2]uint32{clientISN, serverISN}
	c.heard = [2]bool{}
	return c
}

func (c *Conversation) last() *Segment { return &c.Segments[len(c.Segments)-1] }
