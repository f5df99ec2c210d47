package link

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

func fixed() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

var (
	client = netip.MustParseAddrPort("10.99.0.1:40000")
	server = netip.MustParseAddrPort("10.99.0.2:8080")
)

func segment(change func(*packet)) packet {
	p := packet{bytes: 1500, tcp: true, from: client, to: server, ack: true}
	change(&p)
	return p
}

var (
	firstSyn = segment(func(p *packet) { p.syn, p.ack = true, false })
	lastAck  = segment(func(*packet) {})
	data     = segment(func(p *packet) { p.data = 100 })
)

func TestADelayWithoutJitterIsTheSameForAll(t *testing.T) {
	g := newGate(Settings{DelayMs: 20, LossBurst: 1, Queue: 10}, fixed())
	for at := range 5 * time.Millisecond {
		if at%time.Millisecond != 0 {
			continue
		}
		verdict, due := g.take(at, data)
		if verdict != pass || due != at+20*time.Millisecond {
			t.Errorf("at %v: %v, %v", at, verdict, due)
		}
	}
}

func TestARateLetsPacketsWaitForEachOther(t *testing.T) {
	g := newGate(Settings{DelayMs: 5, RateKbit: 12_000, LossBurst: 1, Queue: 3}, fixed())
	var dues []time.Duration
	for range 3 {
		_, due := g.take(0, data)
		dues = append(dues, due)
	}
	// 1,500 bytes take a millisecond at 12 Mbit/s.
	for index, due := range dues {
		if want := time.Duration(index+6) * time.Millisecond; due != want {
			t.Errorf("packet %d leaves at %v, want %v", index, due, want)
		}
	}
	if verdict, _ := g.take(0, data); verdict != drop {
		t.Error("the queue holds more than it may")
	}
	g.leave()
	if verdict, _ := g.take(0, data); verdict != pass {
		t.Error("a packet that left makes no room")
	}
}

func TestLossesAreAsManyAndAsLongAsAsked(t *testing.T) {
	for _, burst := range []int{1, 4} {
		g := newGate(Settings{LossPercent: 10, LossBurst: burst, Queue: 1}, fixed())
		const packets = 200_000
		lost, begun, before := 0, 0, false
		for range packets {
			now := g.isLost()
			if now {
				lost++
				if !before {
					begun++
				}
			}
			before = now
		}
		if share := float64(lost) / packets; math.Abs(share-0.1) > 0.005 {
			t.Errorf("bursts of %d: %.4f are lost", burst, share)
		}
		// By chance, a lost packet follows another one in a tenth of the cases.
		want := map[int]float64{1: 1 / 0.9, 4: 4}[burst]
		if mean := float64(lost) / float64(begun); math.Abs(mean-want) > 0.1*want {
			t.Errorf("bursts of %d: %.2f in succession", burst, mean)
		}
	}
}

func TestTheFirstPacketsOfAHandshakeAreDropped(t *testing.T) {
	g := newGate(Settings{DropSyns: 2, DropAcks: 1, LossBurst: 1, Queue: 100}, fixed())
	for index, step := range []struct {
		packet packet
		want   verdict
	}{{firstSyn, drop}, {firstSyn, drop}, {firstSyn, pass}, {lastAck, drop}, {data, pass}, {lastAck, pass}} {
		if verdict, _ := g.take(0, step.packet); verdict != step.want {
			t.Errorf("step %d: %v, want %v", index, verdict, step.want)
		}
	}
}

func TestAnIdleConnectionIsForgottenUntilItsNextSyn(t *testing.T) {
	for _, withReset := range []bool{false, true} {
		g := newGate(Settings{ForgetIdleMs: 1000, ForgetWithReset: withReset, LossBurst: 1, Queue: 100}, fixed())
		gone := drop
		if withReset {
			gone = reset
		}
		for index, step := range []struct {
			at     time.Duration
			packet packet
			want   verdict
		}{
			{0, firstSyn, pass}, {0, lastAck, pass}, {time.Second, data, pass}, {2001 * time.Millisecond, data, gone},
			{2002 * time.Millisecond, data, gone}, {3 * time.Second, firstSyn, pass}, {3 * time.Second, data, pass},
		} {
			if verdict, _ := g.take(step.at, step.packet); verdict != step.want {
				t.Errorf("with RST %v, step %d: %v, want %v", withReset, index, verdict, step.want)
			}
		}
	}
}

func TestAGateRemembersOnlySoManyConnections(t *testing.T) {
	g := newGate(Settings{DropSyns: 1, LossBurst: 1, Queue: 1}, fixed())
	for number := range flowsMax + 10 {
		p := firstSyn
		p.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)}), 1)
		g.take(time.Duration(number), p)
	}
	if len(g.flows) > flowsMax {
		t.Errorf("it remembers %d", len(g.flows))
	}
}

func TestSettingsThatNoLinkCanHaveAreRefused(t *testing.T) {
	for _, text := range []string{
		`[{"to":"b","addresses":[],"loss_burst":1,"queue":1}]`,
		`[{"to":"b","addresses":["fd99::1"],"loss_burst":1,"queue":1}]`,
		`[{"to":"b","addresses":["10.0.0.1"],"loss_burst":1,"queue":1,"delay_ms":1,"jitter_ms":2}]`,
		`[{"to":"b","addresses":["10.0.0.1"],"loss_burst":1,"queue":0}]`,
		`[{"to":"b","addresses":["10.0.0.1"],"loss_burst":1,"queue":1,"loss_percent":101}]`,
		`[{"to":"b","addresses":["10.0.0.1"],"loss_burst":1,"queue":1,"delai":3}]`,
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestAPacketThatIsCutShortIsNoTCP(t *testing.T) {
	whole := resetFor(segment(func(p *packet) { p.ackSeq = 7 }))
	if p := parsePacket(whole); !p.tcp || !p.rst || p.seq != 7 || p.from != server || p.to != client {
		t.Errorf("a RST is read as %+v", p)
	}
	for length := range whole {
		if p := parsePacket(whole[:length]); p.tcp {
			t.Errorf("%d bytes are read as TCP", length)
		}
	}
}

func TestWhatTcSaysOfNetemIsRead(t *testing.T) {
	var q qdisc
	q.Options.Limit, q.Options.Delay.Delay, q.Options.Delay.Jitter = 1000, 0.025, 0.005
	q.Options.Loss.Loss, q.Options.Rate.Rate, q.Options.Reorder.Reorder = 0.0099999998, 1_250_000, 0.25
	want := Settings{DelayMs: 25, JitterMs: 5, LossPercent: 1, LossBurst: 1, RateKbit: 10_000, Queue: 1000, ReorderPercent: 25}
	if got := q.settings(); got.DelayMs != want.DelayMs || got.JitterMs != want.JitterMs || got.LossPercent != want.LossPercent ||
		got.RateKbit != want.RateKbit || got.Queue != want.Queue || got.ReorderPercent != want.ReorderPercent || got.LossBurst != 1 {
		t.Errorf("got %+v", got)
	}
}
