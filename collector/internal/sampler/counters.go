package sampler

import (
	"errors"
	"strconv"

	"connlab/collector/internal/procnet"
)

// deltas writes the counters of a namespace: all of them in a full line, only those that changed in others.
type deltas struct {
	reader *procnet.Reader
	tables []*procnet.Table
	seen   []seen
	buffer []byte
}

// seen is what the last line knew of one table.
type seen struct {
	layout int
	values []int64
	keys   [][]byte // `"TcpExt.ListenDrops":`, ready to append
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
	first := true
	for i, table := range d.tables {
		known := &d.seen[i]
		counters := table.Counters()
		fullTable := full || known.layout != table.Layout()
		if known.layout != table.Layout() {
			known.learn(table)
		}
		for j := range counters {
			value := counters[j].Value
			if !fullTable && known.values[j] == value {
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
	return line
}

func (s *seen) learn(table *procnet.Table) {
	counters := table.Counters()
	s.layout = table.Layout()
	s.values = make([]int64, len(counters))
	s.keys = make([][]byte, len(counters))
	for i, counter := range counters {
		s.keys[i] = append(appendQuoted(nil, counter.Name), ':')
	}
}

func (d *deltas) close() error { return d.reader.Close() }
