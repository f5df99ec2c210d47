package flowtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"connlab/collector/internal/packet"
)

// Traffic describes captures made at random.
type Traffic struct {
	Connections int
	// Exchanges is the number of requests and answers on each connection.
	Exchanges int
	// GapUs is the mean time from one connection's beginning to the next one's.
	GapUs int64
	// Faulty lets everything go wrong that can: segments get lost, missed by
	// the capture, repeated, swapped; ends abort, vanish, and use ports again.
	Faulty bool
}

// Segments returns the traffic in order of time.
func (t Traffic) Segments(random *rand.Rand) []Segment {
	var all []Segment
	beginNs := int64(StartNs)
	for i := range t.Connections {
		// 28,000 ports, as ip_local_port_range has them, on each of some clients.
		client := fmt.Sprintf("10.0.%d.%d:%d", i/28000/250, i/28000%250+1, 32768+i%28000)
		c := NewConversation(client, "10.1.0.1:8080", random.Uint32(), -random.Uint32N(5000)) // the server's wraps
		c.NowNs = beginNs
		if t.Faulty {
			c.converseBadly(random, t.Exchanges)
		} else {
			c.converse(random, t.Exchanges)
		}
		all = append(all, c.Segments...)
		beginNs += random.Int64N(2 * t.GapUs * 1000)
	}
	slices.SortStableFunc(all, func(a, b Segment) int { return int(min(max(a.TimeNs-b.TimeNs, -1), 1)) })
	return all
}

// converse does exchanges as the lab's traffic has them.
func (c *Conversation) converse(random *rand.Rand, exchanges int) {
	c.Open()
	for range exchanges {
		c.Data(Client, 120+random.IntN(400)).Wait(random.Int64N(2000))
		c.ACK(Server).Wait(random.Int64N(2000))
		c.Data(Server, 200+random.IntN(1200))
		c.ACK(Client).Wait(random.Int64N(5000))
	}
	c.Close(random.IntN(2))
}

var records = []string{
	ClientHello, ServerHello, ClientHello, ServerHello, ClientKeyExchange, NewSessionTicket, ChangeCipherSpec, EncryptedData,
	HandshakeFailure,
}

// converseBadly sends whatever a TCP may, in any order, and worse.
func (c *Conversation) converseBadly(random *rand.Rand, exchanges int) {
	steps := []func(){
		func() { c.SYN() },
		func() { c.SYNACK() },
		func() { c.Send(Server, packet.SYN, 0) },
		func() { c.RST(random.IntN(2)) },
		func() { c.FIN(random.IntN(2)) },
		func() { c.nextAtRandom(random).SYN() },
		func() { c.nextAtRandom(random).Open() },
		func() { c.Close(random.IntN(2)) },
	}
	usual := []func(){
		func() { c.ACK(random.IntN(2)) },
		func() { c.Data(random.IntN(2), 1+random.IntN(1000)) },
		func() { c.Data(random.IntN(2), 1+random.IntN(1000)).Lose() },
		func() { c.Data(random.IntN(2), 1+random.IntN(1000)).Hide() },
		func() { c.Record(random.IntN(2), records[random.IntN(len(records))]) },
		func() { c.repeatPart(random) },
		func() {
			if n := len(c.Segments); n >= 2 {
				c.Swap()
			}
		},
	}
	switch random.IntN(8) {
	case 0: // the capture begins in the midst of it
		c.Open().Data(random.IntN(2), 100)
		c.Segments = nil
		c.Data(random.IntN(2), 100)
	case 1:
		c.SYN()
		for range random.IntN(6) {
			c.Wait(1e6).Again(Client)
		}
	default:
		c.Open()
	}
	for range 4 * exchanges {
		c.Wait(random.Int64N(3000))
		if random.IntN(10) == 0 {
			steps[random.IntN(len(steps))]()
		} else {
			usual[random.IntN(len(usual))]()
		}
	}
	if random.IntN(3) > 0 {
		c.Close(random.IntN(2))
	}
}

// nextAtRandom begins another connection, in the sequence space either shortly
// after this one, as Linux does, or further away than any window reaches.
func (c *Conversation) nextAtRandom(random *rand.Rand) *Conversation {
	jump := random.Uint32N(5000)
	// Two jumps at most: a third could come near the first connection again.
	if c.jumps < 2 && random.IntN(4) == 0 {
		c.jumps++
		jump += 1<<30 + 1<<20 + random.Uint32N(1<<28)
	}
	return c.Next(c.next[Client]+jump, c.next[Server]+jump)
}

// repeatPart sends some earlier segment again, or a part of it with more after.
func (c *Conversation) repeatPart(random *rand.Rand) {
	if len(c.Segments) == 0 {
		return
	}
	s := c.Segments[random.IntN(len(c.Segments))]
	if s.Payload > 1 && random.IntN(2) == 0 {
		skip := random.IntN(s.Payload)
		s.Seq += uint32(skip)
		s.Payload += random.IntN(300) - skip
		s.Payload = max(s.Payload, 0)
		s.Start = s.Start[min(skip, len(s.Start)):]
	}
	s.TimeNs = c.Wait(1).NowNs
	c.Segments = append(c.Segments, s)
}
