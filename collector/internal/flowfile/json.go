package flowfile

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"connlab/collector/internal/flow"
)

// WriteJSON writes a reduced capture as JSON lines: a header, the flows, and at
// the end the summary, without which the file is not whole.
func WriteJSON(w io.Writer, r *flow.Result) error {
	about, err := json.Marshal(summarise(&r.Summary))
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	line := []byte(`{"kind":"header","schema":"` + Schema + "\"}\n")
	var f flow.Flow
	reader := r.Reader()
	for i := range r.Len() {
		if _, err := buffered.Write(line); err != nil {
			return err
		}
		reader.Read(i, &f)
		line = appendFlow(line[:0], &f)
	}
	if _, err := buffered.Write(line); err != nil {
		return err
	}
	if _, err := buffered.Write(append(about, '\n')); err != nil {
		return err
	}
	return buffered.Flush()
}

func appendFlow(line []byte, f *flow.Flow) []byte {
	line = append(line, `{"kind":"flow"`...)
	for i := range columns {
		line = append(line, `,"`...)
		line = append(line, columns[i].fullName()...)
		line = append(line, `":`...)
		line = columns[i].appendJSON(line, f, 1000)
	}
	line = append(line, `,"`+fineGroup+`":`...)
	if !f.FineClock {
		return append(line, "null}\n"...)
	}
	separator := byte('{')
	for i := range columns {
		if columns[i].isTime() {
			line = append(line, separator, '"')
			line = append(line, columns[i].fineName()...)
			line = append(line, `":`...)
			line = columns[i].appendJSON(line, f, 1)
			separator = ','
		}
	}
	return append(line, "}}\n"...)
}

// appendJSON appends a flow's value; times in ticks.
func (c *column) appendJSON(line []byte, f *flow.Flow, tickNs int64) []byte {
	switch get := c.get.(type) {
	case number:
		return strconv.AppendInt(line, get(f), 10)
	case maybeNumber:
		v, known := get(f)
		return appendMaybe(line, v, known)
	case flag:
		return strconv.AppendBool(line, get(f))
	case address:
		line = append(line, '"')
		line = get(f).AppendTo(line)
		return append(line, '"')
	case choice:
		word := get.get(f)
		if word == "" {
			return append(line, "null"...)
		}
		line = append(line, '"')
		line = append(line, word...)
		return append(line, '"')
	case instant:
		return strconv.AppendInt(line, flow.Ticks(get(f), tickNs), 10)
	case maybeInstant:
		ns, known := get(f)
		return appendMaybe(line, flow.Ticks(ns, tickNs), known)
	case duration:
		ns, known := get(f)
		return appendMaybe(line, flow.Ticks(ns, tickNs), known)
	case instants:
		line = append(line, '[')
		for i, ns := range get(f) {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendInt(line, flow.Ticks(ns, tickNs), 10)
		}
		return append(line, ']')
	}
	panic("flowfile: a column without a getter")
}

func appendMaybe(line []byte, v int64, known bool) []byte {
	if !known {
		return append(line, "null"...)
	}
	return strconv.AppendInt(line, v, 10)
}
