package flowfile

import (
	"connlab/collector/internal/flow"
	"connlab/collector/internal/packet"
)

// summary is the last line of the JSON lines, and stands in the Parquet file's
// metadata: what was read, and what not.
type summary struct {
	Kind            string       `json:"kind"`
	Complete        bool         `json:"complete"`
	Unreadable      []unreadable `json:"unreadable"`
	Flows           uint64       `json:"flows"`
	Packets         uint64       `json:"packets"`
	TCPPackets      uint64       `json:"tcp_packets"`
	SnappedPackets  uint64       `json:"snapped_packets"`
	BeyondFrame     uint64       `json:"beyond_frame_packets"`
	NotIP           uint64       `json:"skipped_not_ip"`
	NotTCP          uint64       `json:"skipped_not_tcp"`
	GRE             uint64       `json:"skipped_gre"`
	VXLAN           uint64       `json:"skipped_vxlan"`
	Geneve          uint64       `json:"skipped_geneve"`
	GTP             uint64       `json:"skipped_gtp"`
	IPinIP          uint64       `json:"skipped_ip_in_ip"`
	Pseudowires     uint64       `json:"skipped_pseudowires"`
	Fragments       uint64       `json:"skipped_fragments"`
	Cut             uint64       `json:"skipped_cut_headers"`
	Malformed       uint64       `json:"skipped_malformed"`
	UnsupportedLink uint64       `json:"skipped_unsupported_link"`
	Untimed         uint64       `json:"skipped_untimed"`
	MissingBytes    uint64       `json:"missing_bytes"`
	FirstTimeUs     *int64       `json:"first_time_us"`
	LastTimeUs      *int64       `json:"last_time_us"`
	BackwardSteps   uint64       `json:"backward_steps"`
	BackwardUsMax   int64        `json:"backward_us_max"`
}

// unreadable says from which byte on a capture could not be read, and why.
type unreadable struct {
	File int    `json:"file"` // from 1, in the order given
	Byte int64  `json:"byte"`
	Why  string `json:"why"`
}

func summarise(s *flow.Summary) summary {
	out := summary{
		Kind:            "end",
		Complete:        len(s.Damage) == 0,
		Unreadable:      unreadables(s),
		Flows:           s.Flows,
		Packets:         s.Packets,
		TCPPackets:      s.Kinds[packet.TCP],
		SnappedPackets:  s.Snapped,
		BeyondFrame:     s.BeyondFrame,
		NotIP:           s.Kinds[packet.NotIP],
		NotTCP:          s.Kinds[packet.NotTCP],
		GRE:             s.Kinds[packet.GRE],
		VXLAN:           s.Kinds[packet.VXLAN],
		Geneve:          s.Kinds[packet.Geneve],
		GTP:             s.Kinds[packet.GTP],
		IPinIP:          s.Kinds[packet.IPinIP],
		Pseudowires:     s.Kinds[packet.Pseudowire],
		Fragments:       s.Kinds[packet.Fragment],
		Cut:             s.Kinds[packet.Cut],
		Malformed:       s.Kinds[packet.Malformed],
		UnsupportedLink: s.Kinds[packet.UnsupportedLink],
		Untimed:         s.Untimed,
		MissingBytes:    s.MissingBytes,
		BackwardSteps:   s.BackwardSteps,
		BackwardUsMax:   flow.Microseconds(s.BackwardNsMax),
	}
	if s.Packets > s.Untimed {
		first, last := flow.Microseconds(s.FirstNs), flow.Microseconds(s.LastNs)
		out.FirstTimeUs, out.LastTimeUs = &first, &last
	}
	return out
}

func unreadables(s *flow.Summary) []unreadable {
	all := []unreadable{}
	for _, d := range s.Damage {
		all = append(all, unreadable{d.File, d.Offset, d.Why})
	}
	return all
}
