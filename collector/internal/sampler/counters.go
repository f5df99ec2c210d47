package sampler

import (
	"errors"
	"strconv"
	"strings"

	"connlab/collector/internal/procnet"
)

// deltas writes the counters of a namespace: all of them in a full line, only those that changed in others.
type deltas struct {
	reader *procnet.Reader
	tables []*procnet.Table
	seen   []seen
	buffer []byte
	// moves grows with each line in which a counter has changed that changes with the sockets' states.
	moves int64
}

// seen is what the last line knew of one table.
type seen struct {
	layout int
	values []int64
	keys   [][]byte // `"TcpExt.ListenDrops":`, ready to append
	states []bool   // which counters change with the sockets' states
}

func openDeltas(root string) (*deltas, error) {
	reader, err := procnet.Open(root)
	if err != nil {
		return nil, err
	}
	d := &deltas{reader: reader, tables: reader.Tables(), buffer: make([]byte, 16<<10)}
	d.seen = make([]seen, len(d.tables))
	// The first reading only learns the names: the first line is a full one anyway.
	if err := d.read(); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return d, nil
}

// read takes a new reading.
func (d *deltas) read() error {
	var err error
	d.buffer, err = d.reader.Read(d.buffer)
	return err
}

// appendTo appends the members of the counters' object to a line.
func (d *deltas) appendTo(line []byte, full bool) []byte {
	first, moved := true, false
	for i, table := range d.tables {
		known := &d.seen[i]
		counters := table.Counters()
		fullTable := full || known.layout != table.Layout()
		if known.layout != table.Layout() {
			known.learn(table)
			moved = true
		}
		for j := range counters {
			value := counters[j].Value
			changed := known.values[j] != value
			moved = moved || changed && known.states[j]
			if !fullTable && !changed {
				continue
			}
			known.values[j] = value
			if !first {
				line = append(line, ',')
			}
			first = false
			line = append(line, known.keys[j]...)
			line = strconv.AppendInt(line, value, 10)
		}
	}
	if moved {
		d.moves++
	}
	return line
}

func (s *seen) learn(table *procnet.Table) {
	counters := table.Counters()
	s.layout = table.Layout()
	s.values = make([]int64, len(counters))
	s.keys = make([][]byte, len(counters))
	s.states = make([]bool, len(counters))
	for i, counter := range counters {
		s.keys[i] = append(appendQuoted(nil, counter.Name), ':')
		s.states[i] = changesWithStates(counter.Name)
	}
}

// changesWithStates says whether a counter can change as a socket changes its state. A socket does so by a segment that
// is sent or comes in, or by a timer, and the kernel counts each of these. The memory of TCP and all sockets that are
// allocated are counts of the whole machine.
func changesWithStates(counter string) bool {
	return strings.HasPrefix(counter, "Tcp.") || strings.HasPrefix(counter, "TcpExt.") ||
		strings.HasPrefix(counter, "sockstat") && strings.Contains(counter, ".TCP") &&
			!strings.HasSuffix(counter, ".mem") && !strings.HasSuffix(counter, ".alloc")
}

func (d *deltas) close() error { return d.reader.Close() }
