package flowfile

import (
	"github.com/parquet-go/parquet-go"
)

// fineGroup is the group of the columns in nanoseconds.
const fineGroup = "fine"

// leaf is a column of the Parquet file: a column, or its twin in the group
// "fine".
type leaf struct {
	*column
	fine bool
}

// leaves are the columns of the Parquet file in their order.
var leaves = func() []leaf {
	var all []leaf
	for i := range columns {
		all = append(all, leaf{&columns[i], false})
	}
	for i := range columns {
		if columns[i].isTime() {
			all = append(all, leaf{&columns[i], true})
		}
	}
	return all
}()

// parquetSchema returns the layout of the Parquet file.
func parquetSchema() *parquet.Schema {
	var main, fine ordered
	for _, l := range leaves {
		if l.fine {
			fine.add(l.fineName(), l.node())
		} else {
			main.add(l.fullName(), l.node())
		}
	}
	main.add(fineGroup, parquet.Optional(&fine))
	return parquet.NewSchema("flow", &main)
}

// node returns the column's type and encoding.
func (c *column) node() parquet.Node {
	integer := parquet.Encoded(parquet.Leaf(parquet.Int64Type), &parquet.DeltaBinaryPacked)
	word := parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	switch get := c.get.(type) {
	case number, instant:
		return integer
	case maybeNumber, maybeInstant, duration:
		return parquet.Optional(integer)
	case instants:
		return parquet.List(integer)
	case flag:
		return parquet.Leaf(parquet.BooleanType)
	case address:
		return word
	case choice:
		if get.nullable {
			return parquet.Optional(word)
		}
		return word
	}
	panic("flowfile: a column without a getter")
}

// ordered is a group whose fields stay in the order in which they were added; a
// parquet.Group sorts them by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o *ordered) add(name string, node parquet.Node) {
	field := parquet.Group{name: node}.Fields()[0]
	o.fields = append(o.fields, field)
	if o.Group == nil {
		o.Group = parquet.Group{}
	}
	o.Group[name] = node
}

// Fields returns the fields in their order.
func (o *ordered) Fields() []parquet.Field { return o.fields }
