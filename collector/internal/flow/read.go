package flow

import (
	"errors"
	"io"

	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// Summary says what was read.
type Summary struct {
	Packets       uint64               // in all
	Kinds         [packet.Kinds]uint64 // packets that have a time, by what they are
	Untimed       uint64               // packets without a time
	Snapped       uint64               // TCP packets that the capture holds only the beginning of
	BeyondFrame   uint64               // TCP packets whose IP header claims more bytes than their frame had
	UnknownLink   uint32               // the first unsupported link-layer type, if Kinds counts any
	UnknownLinkIn int                  // the capture that has it, from 1, in the order given
	FirstNs       int64                // time of the first packet
	LastNs        int64                // time of the last packet
	BackwardSteps uint64               // packets with a time before that of the packet ahead of them
	BackwardNsMax int64                // the largest such step
	Flows         uint64
	MissingBytes  uint64 // over all flows: sent, never seen
	Damage        []Damage

	reading int // the capture being read, from 1
}

// Damage says that one of the captures could not be read to its end.
type Damage struct {
	File int // the capture, from 1, in the order given
	*pcapfile.DamageError
}

// Segments reads captures, one after the other as if they were one, and calls
// visit for each TCP segment that has a time, with its number in the captures
// from 1. What visit gets is valid until it returns. An error of visit ends the
// reading. Damage in a capture ends the reading of that capture; the summary
// says where.
func Segments(files []*pcapfile.File, visit func(number uint64, rec *pcapfile.Record, seg *packet.Segment) error) (*Summary, error) {
	var summary Summary
	err := summary.readAll(files, func(reader *pcapfile.Reader) error {
		var rec pcapfile.Record
		var seg packet.Segment
		for {
			if err := reader.Next(&rec); err != nil {
				return err
			}
			kind := packet.Decode(rec.LinkType, rec.Data, rec.WireLen, &seg)
			if !summary.count(&rec, kind, &seg) {
				continue
			}
			if err := visit(summary.Packets, &rec, &seg); err != nil {
				return err
			}
		}
	})
	return &summary, err
}

// readAll reads captures by read, which reads one to its end and returns why it
// ended: io.EOF if it did well.
func (s *Summary) readAll(files []*pcapfile.File, read func(*pcapfile.Reader) error) error {
	for i, f := range files {
		s.reading = i + 1
		reader, err := f.NewReader()
		if err != nil {
			return err
		}
		err = reader.Guard(func() error { return read(reader) })
		var damage *pcapfile.DamageError
		switch {
		case errors.As(err, &damage):
			s.Damage = append(s.Damage, Damage{i + 1, damage})
		case err != io.EOF:
			return errors.Join(err, reader.Close())
		}
		if err := reader.Close(); err != nil {
			return err
		}
	}
	return nil
}

// count counts the next packet, and says whether it is a TCP segment that has a
// time; seg is that segment.
func (s *Summary) count(rec *pcapfile.Record, kind packet.Kind, seg *packet.Segment) bool {
	s.Packets++
	if rec.Untimed {
		s.Untimed++
		return false
	}
	s.noteTime(rec.TimeNs)
	s.Kinds[kind]++
	if kind != packet.TCP {
		if kind == packet.UnsupportedLink && s.Kinds[kind] == 1 {
			s.UnknownLink, s.UnknownLinkIn = rec.LinkType, s.reading
		}
		return false
	}
	if uint32(len(rec.Data)) < rec.WireLen {
		s.Snapped++
	}
	if seg.BeyondFrame {
		s.BeyondFrame++
	}
	return true
}

// noteTime watches the clock of the capture.
func (s *Summary) noteTime(ns int64) {
	timed := s.Packets - s.Untimed
	if timed == 1 {
		s.FirstNs = ns
	} else if back := s.LastNs - ns; back > 0 {
		s.BackwardSteps++
		s.BackwardNsMax = max(s.BackwardNsMax, back)
	}
	s.LastNs = ns
}
