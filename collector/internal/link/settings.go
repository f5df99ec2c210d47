// Package link makes the way from this namespace to its peers longer, slower or lossy: by the kernel's netem, or, where the
// kernel has none, by a process that holds the packets of an NFQUEUE.
package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Settings are those of one link: the way to one peer, in one direction.
type Settings struct {
	To        string       `json:"to"`
	Addresses []netip.Addr `json:"addresses"`
	DelayMs   int          `json:"delay_ms"`
	// JitterMs is how far the delay of a packet may be from DelayMs, either way; all are equally likely.
	JitterMs    int     `json:"jitter_ms"`
	LossPercent float64 `json:"loss_percent"`
	// LossBurst is how many packets in succession are lost, on average.
	LossBurst int `json:"loss_burst"`
	// RateKbit is in kilobits of 1,000 bits a second; 0 is unlimited.
	RateKbit int `json:"rate_kbit"`
	// Queue is how many packets the link holds, those on the way included; the next one is lost.
	Queue int `json:"queue"`
	// ReorderPercent of the packets have no delay, and so overtake others.
	ReorderPercent float64 `json:"reorder_percent"`
	// ForgetIdleMs is how long a connection may be idle before a middlebox forgets it; 0 is for ever.
	ForgetIdleMs int `json:"forget_idle_ms"`
	// ForgetWithReset answers a packet of a forgotten connection with RST; otherwise it is dropped without a word.
	ForgetWithReset bool `json:"forget_with_reset"`
	// DropSyns is how many SYNs of each connection are dropped, from the first on.
	DropSyns int `json:"drop_syns"`
	// DropAcks is how many of the packets that end each handshake are dropped, from the first on.
	DropAcks int `json:"drop_acks"`
	// DropPort is the destination port whose packets are dropped; 0 is none.
	DropPort int `json:"drop_port"`
}

// Parse reads a list of settings.
func Parse(text string) ([]Settings, error) {
	var all []Settings
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("the links' settings: %w", err)
	}
	var errs []error
	for _, s := range all {
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("the link to %s: %w", s.To, err))
		}
	}
	return all, errors.Join(errs...)
}

// linksMax is the number of bands that a prio qdisc has, without the one for all else.
const linksMax = 15

func (s Settings) check() error {
	for _, address := range s.Addresses {
		if !address.Is4() {
			return fmt.Errorf("%s is no IPv4 address", address)
		}
	}
	switch {
	case len(s.Addresses) == 0:
		return errors.New("it has no address")
	case s.DelayMs < 0 || s.JitterMs < 0 || s.JitterMs > s.DelayMs:
		return errors.New("the jitter exceeds the delay")
	case s.LossPercent < 0 || s.LossPercent > 100 || s.ReorderPercent < 0 || s.ReorderPercent > 100:
		return errors.New("a share is from 0 to 100 %")
	case s.LossBurst < 1 || s.Queue < 1 || s.RateKbit < 0:
		return errors.New("bursts and the queue have at least one packet, and the rate is 0 or more")
	case s.ForgetIdleMs < 0 || s.DropSyns < 0 || s.DropAcks < 0 || s.DropPort < 0 || s.DropPort > 65535:
		return errors.New("what it forgets and drops is 0 or more")
	}
	return nil
}

// isOfFlows says whether the link must know connections, as netem does not.
func (s Settings) isOfFlows() bool {
	return s.ForgetIdleMs > 0 || s.DropSyns > 0 || s.DropAcks > 0 || s.DropPort > 0
}

// burst gives the two chances of Gilbert's model of losses in bursts: that a packet begins one, and that one ends.
func (s Settings) burst() (begins, ends float64) {
	share := s.LossPercent / 100
	ends = 1 / float64(s.LossBurst)
	if share >= 1 {
		return 1, 0
	}
	return min(1, ends*share/(1-share)), ends
}

// A Report says what stands: the settings as the kernel, or the process that holds the packets, has them, and what went
// over the link so far.
type Report struct {
	Way   string  `json:"way"` // "netem", "nfqueue"; "" if there is no link
	Links []State `json:"links"`
}

// The ways.
const (
	Netem   = "netem"
	NFQueue = "nfqueue"
)

// A State is one link's part of a report.
type State struct {
	Settings
	Packets int64 `json:"packets"` // that came to the link
	Lost    int64 `json:"lost"`    // of these: by the loss, the full queue, and what the link drops and forgot
	// The rest only by NFQUEUE: the kernel dropped packets because the process did not keep up; the process sent
	// packets more than a millisecond late, the worst by so much.
	Unqueued  *int64 `json:"unqueued"`
	Late      *int64 `json:"late"`
	LateMaxUs *int64 `json:"late_max_us"`
}
