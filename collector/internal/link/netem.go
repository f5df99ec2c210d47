package link

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
)

// tool runs a program of the system's, and gives what it prints.
func tool(name string, arguments ...string) ([]byte, error) {
	var messages strings.Builder
	command := exec.Command(name, arguments...)
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(messages.String()))
	}
	return output, nil
}

func percent(share float64) string { return strconv.FormatFloat(share, 'f', -1, 64) + "%" }

// netemArguments are the settings as tc takes them.
func (s Settings) netemArguments() []string {
	arguments := []string{"netem", "limit", strconv.Itoa(s.Queue)}
	if s.DelayMs > 0 {
		arguments = append(arguments, "delay", fmt.Sprintf("%dms", s.DelayMs))
		if s.JitterMs > 0 {
			arguments = append(arguments, fmt.Sprintf("%dms", s.JitterMs))
		}
	}
	if s.ReorderPercent > 0 {
		arguments = append(arguments, "reorder", percent(s.ReorderPercent))
	}
	switch {
	case s.LossPercent > 0 && s.LossBurst > 1:
		begins, ends := s.burst()
		arguments = append(arguments, "loss", "gemodel", percent(100*begins), percent(100*ends))
	case s.LossPercent > 0:
		arguments = append(arguments, "loss", percent(s.LossPercent))
	}
	if s.RateKbit > 0 {
		arguments = append(arguments, "rate", fmt.Sprintf("%dkbit", s.RateKbit))
	}
	return arguments
}

// setNetem gives each link a band of its own below a prio qdisc; everything else goes through the first band.
func setNetem(device string, all []Settings) error {
	// A packet of the link is a packet, and not up to 64 KiB of one connection that the device would have split.
	if _, err := tool("ip", "link", "set", "dev", device, "gso_max_segs", "1"); err != nil {
		return err
	}
	prio := []string{"qdisc", "add", "dev", device, "root", "handle", "1:", "prio", "bands", strconv.Itoa(len(all) + 1), "priomap"}
	for range 16 {
		prio = append(prio, "0")
	}
	if _, err := tool("tc", prio...); err != nil {
		return err
	}
	for index, s := range all {
		band := fmt.Sprintf("1:%x", index+2)
		qdisc := append([]string{"qdisc", "add", "dev", device, "parent", band, "handle", fmt.Sprintf("%x:", index+2)}, s.netemArguments()...)
		if _, err := tool("tc", qdisc...); err != nil {
			return err
		}
		for _, address := range s.Addresses {
			_, err := tool("tc", "filter", "add", "dev", device, "parent", "1:", "protocol", "ip", "u32", "match", "ip", "dst",
				address.String()+"/32", "flowid", band)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func removeNetem(device string) error {
	_, err := tool("tc", "qdisc", "del", "dev", device, "root")
	return err
}

// qdisc is what tc says of one, with -json -statistics.
type qdisc struct {
	Kind    string `json:"kind"`
	Handle  string `json:"handle"`
	Options struct {
		Limit int `json:"limit"`
		Delay struct {
			Delay  float64 `json:"delay"`
			Jitter float64 `json:"jitter"`
		} `json:"delay"`
		Loss struct {
			Loss float64 `json:"loss"`
		} `json:"loss-random"`
		Bursts *struct {
			Begins float64 `json:"p"`
			Ends   float64 `json:"r"`
		} `json:"loss-gemodel"`
		Reorder struct {
			Reorder float64 `json:"reorder"`
		} `json:"reorder"`
		Rate struct {
			Rate int `json:"rate"` // bytes a second
		} `json:"rate"`
	} `json:"options"`
	Packets int64 `json:"packets"`
	Drops   int64 `json:"drops"`
}

// rounded undoes what the kernel's units make of a share: it has 32 bits for it.
func rounded(percent float64) float64 { return math.Round(percent*1e4) / 1e4 }

func (q qdisc) settings() Settings {
	o := q.Options
	s := Settings{
		DelayMs: int(math.Round(1000 * o.Delay.Delay)), JitterMs: int(math.Round(1000 * o.Delay.Jitter)),
		LossPercent: rounded(100 * o.Loss.Loss), LossBurst: 1, RateKbit: o.Rate.Rate / 125, Queue: o.Limit,
		ReorderPercent: rounded(100 * o.Reorder.Reorder),
	}
	if o.Bursts != nil && o.Bursts.Begins > 0 {
		s.LossPercent = rounded(100 * o.Bursts.Begins / (o.Bursts.Begins + o.Bursts.Ends))
		s.LossBurst = int(math.Round(1 / o.Bursts.Ends))
	}
	return s
}

// readNetem gives what tc says of each link, in the order of their bands. What goes where, the filters say: their
// addresses stand in the report as they are.
func readNetem(device string) ([]State, error) {
	output, err := tool("tc", "-json", "-statistics", "qdisc", "show", "dev", device)
	if err != nil {
		return nil, err
	}
	var all []qdisc
	if err := json.Unmarshal(output, &all); err != nil {
		return nil, fmt.Errorf("tc qdisc show: %w", err)
	}
	var states []State
	for _, q := range all {
		if q.Kind == "netem" {
			// What netem lost it did not count among the packets that it has sent.
			states = append(states, State{Settings: q.settings(), Packets: q.Packets + q.Drops, Lost: q.Drops})
		}
	}
	return states, nil
}
