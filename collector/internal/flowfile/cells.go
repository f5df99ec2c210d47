package flowfile

import (
	"net/netip"

	"github.com/parquet-go/parquet-go"

	"connlab/collector/internal/flow"
)

// cells makes the values of one Parquet column at a time.
type cells struct {
	values    []parquet.Value
	addresses map[netip.Addr]parquet.Value
	words     map[string]parquet.Value
}

func newCells() *cells {
	return &cells{addresses: map[netip.Addr]parquet.Value{}, words: map[string]parquet.Value{}}
}

// make returns a column's values, which hold until the next call.
func (c *cells) make(of leaf, flows []flow.Flow) []parquet.Value {
	c.values = c.values[:0]
	base, tickNs := 0, int64(1000)
	if of.fine {
		base, tickNs = 1, 1
	}
	for i := range flows {
		f := &flows[i]
		if of.fine && !f.FineClock {
			c.null(0) // no group
			continue
		}
		switch get := of.get.(type) {
		case number:
			c.integer(get(f), base)
		case maybeNumber:
			v, known := get(f)
			c.maybe(v, known, base)
		case flag:
			c.values = append(c.values, parquet.BooleanValue(get(f)))
		case address:
			c.values = append(c.values, c.address(get(f)))
		case choice:
			c.choose(&get, get.get(f), base)
		case instant:
			c.integer(flow.Ticks(get(f), tickNs), base)
		case maybeInstant:
			ns, known := get(f)
			c.maybe(flow.Ticks(ns, tickNs), known, base)
		case duration:
			ns, known := get(f)
			c.maybe(flow.Ticks(ns, tickNs), known, base)
		case instants:
			c.list(get(f), base, tickNs)
		}
	}
	return c.values
}

// put adds a value at a definition level. Level is slow, and 0 is what a value
// has without it.
func (c *cells) put(v parquet.Value, definition int) {
	if definition != 0 {
		v = v.Level(0, definition, 0)
	}
	c.values = append(c.values, v)
}

func (c *cells) null(definition int) { c.put(parquet.NullValue(), definition) }

func (c *cells) integer(v int64, base int) { c.put(parquet.Int64Value(v), base) }

// maybe adds a value at the definition level above base, or null at base.
func (c *cells) maybe(v int64, known bool, base int) {
	if known {
		c.integer(v, base+1)
	} else {
		c.null(base)
	}
}

func (c *cells) choose(from *choice, word string, base int) {
	switch {
	case !from.nullable:
		c.put(c.word(word), base)
	case word == "":
		c.null(base)
	default:
		c.put(c.word(word), base+1)
	}
}

// list adds a list: its elements at the definition level above base, all but
// the first as repetitions.
func (c *cells) list(ns []int64, base int, tickNs int64) {
	if len(ns) == 0 {
		c.null(base)
	}
	for i, t := range ns {
		v := parquet.Int64Value(flow.Ticks(t, tickNs))
		c.values = append(c.values, v.Level(min(i, 1), base+1, 0))
	}
}

func (c *cells) word(word string) parquet.Value {
	v, ok := c.words[word]
	if !ok {
		v = parquet.ByteArrayValue([]byte(word))
		c.words[word] = v
	}
	return v
}

func (c *cells) address(a netip.Addr) parquet.Value {
	v, ok := c.addresses[a]
	if !ok {
		v = parquet.ByteArrayValue([]byte(a.String()))
		c.addresses[a] = v
	}
	return v
}
