package link

import (
	"math/rand/v2"
	"net/netip"
	"time"
)

// A gate decides what becomes of each packet of a link. It knows no kernel; time is what its caller says.
type gate struct {
	settings Settings
	random   *rand.Rand
	inBurst  bool
	free     time.Duration // when the link has sent all that waits for its rate
	holds    int
	flows    map[flow]*memory
	packets  int64
	lost     int64
}

// A flow is a connection in this direction.
type flow struct {
	from, to netip.AddrPort
}

// memory is what a gate knows of a connection.
type memory struct {
	last       time.Duration
	syns, acks int
	open       bool // the handshake's last packet went through
	forgotten  bool
}

// flowsMax is how many connections a gate remembers; it then forgets those that have been idle for the longest.
const flowsMax = 1 << 17

func newGate(settings Settings, random *rand.Rand) *gate {
	return &gate{settings: settings, random: random, flows: map[flow]*memory{}}
}

type verdict int

const (
	pass  verdict = iota // at the time that stands beside it
	drop                 // without a word
	reset                // and let its sender have a RST
)

// take decides about a packet that comes at a time; one that passes is held until it leaves.
func (g *gate) take(now time.Duration, p packet) (verdict, time.Duration) {
	g.packets++
	if verdict := g.byFlow(now, p); verdict != pass {
		g.lost++
		return verdict, 0
	}
	if g.isLost() || g.holds >= g.settings.Queue {
		g.lost++
		return drop, 0
	}
	g.holds++
	return pass, g.due(now, p.bytes)
}

// leave says that a packet was sent.
func (g *gate) leave() { g.holds-- }

func (g *gate) due(now time.Duration, bytes int) time.Duration {
	if g.settings.RateKbit > 0 {
		// 1 kbit/s is a bit in a millisecond.
		takes := time.Duration(bytes) * 8 * time.Millisecond / time.Duration(g.settings.RateKbit)
		g.free = max(g.free, now) + takes
		now = g.free
	}
	if g.settings.ReorderPercent > 0 && 100*g.random.Float64() < g.settings.ReorderPercent {
		return now
	}
	delay := time.Duration(g.settings.DelayMs) * time.Millisecond
	if g.settings.JitterMs > 0 {
		delay += time.Duration((2*g.random.Float64() - 1) * float64(g.settings.JitterMs) * float64(time.Millisecond))
	}
	return now + delay
}

func (g *gate) isLost() bool {
	if g.settings.LossPercent == 0 {
		return false
	}
	if g.settings.LossBurst == 1 {
		return 100*g.random.Float64() < g.settings.LossPercent
	}
	begins, ends := g.settings.burst()
	if g.inBurst {
		g.inBurst = g.random.Float64() >= ends
	} else {
		g.inBurst = g.random.Float64() < begins
	}
	return g.inBurst
}

// byFlow decides by what a packet is, and by what its connection did before.
func (g *gate) byFlow(now time.Duration, p packet) verdict {
	s := g.settings
	if !p.tcp || !s.isOfFlows() {
		return pass
	}
	if s.DropPort > 0 && int(p.to.Port()) == s.DropPort {
		return drop
	}
	known := g.remember(now, p)
	idle := now - known.last
	known.last = now
	// A SYN makes a new connection; a middlebox that has forgotten the old one takes it.
	if p.syn && !p.ack {
		known.forgotten, known.open = false, false
		known.syns++
		if known.syns <= s.DropSyns {
			return drop
		}
		return pass
	}
	if limit := time.Duration(s.ForgetIdleMs) * time.Millisecond; limit > 0 && idle > limit {
		known.forgotten = true
	}
	if known.forgotten {
		if s.ForgetWithReset {
			return reset
		}
		return drop
	}
	if !known.open && known.syns > 0 && p.ack && !p.syn && p.data == 0 {
		if known.acks < s.DropAcks {
			known.acks++
			return drop
		}
	}
	known.open = true
	return pass
}

func (g *gate) remember(now time.Duration, p packet) *memory {
	key := flow{p.from, p.to}
	if known, found := g.flows[key]; found {
		return known
	}
	if len(g.flows) >= flowsMax {
		g.forgetIdlest(now)
	}
	known := &memory{last: now}
	g.flows[key] = known
	return known
}

func (g *gate) forgetIdlest(now time.Duration) {
	var sum time.Duration
	for _, known := range g.flows {
		sum += now - known.last
	}
	mean := sum / time.Duration(len(g.flows))
	for key, known := range g.flows {
		if now-known.last >= mean {
			delete(g.flows, key)
		}
	}
}
