package flowfile

import (
	"encoding/json"
	"io"
	"runtime"
	"sync"

	"github.com/parquet-go/parquet-go"

	"connlab/collector/internal/flow"
)

// Keys of the Parquet file's own metadata.
const (
	schemaKey  = "connlab.schema"
	summaryKey = "connlab.summary"
)

const (
	// rowGroupLen is the number of rows that are encoded together.
	rowGroupLen = 1 << 14
	// batchLen is the number of rows that are looked at together: few enough to
	// stay in the processor's cache while one column after the other is made.
	batchLen = 1 << 8
)

// WriteParquet writes a reduced capture as Parquet. The same capture gives the
// same bytes.
func WriteParquet(w io.Writer, r *flow.Result) error {
	about, err := json.Marshal(summarise(&r.Summary))
	if err != nil {
		return err
	}
	file := parquet.NewGenericWriter[any](w,
		parquetSchema(),
		parquet.CreatedBy("connlab flows", "1", ""), // not the build, which changes
		parquet.Compression(&parquet.Snappy),
		parquet.KeyValueMetadata(schemaKey, Schema),
		parquet.KeyValueMetadata(summaryKey, string(about)),
	)
	// Row groups are encoded side by side, as many as there are processors, and
	// written in their order.
	groups := make([]*parquet.ConcurrentRowGroupWriter, runtime.GOMAXPROCS(0))
	failures := make([]error, len(groups))
	for begin := 0; begin < r.Len(); begin += len(groups) * rowGroupLen {
		var all sync.WaitGroup
		for i := range groups {
			groups[i] = file.BeginRowGroup()
			first := min(begin+i*rowGroupLen, r.Len())
			end := min(first+rowGroupLen, r.Len())
			all.Go(func() { failures[i] = encode(groups[i], r, first, end) })
		}
		all.Wait()
		for i, group := range groups {
			if failures[i] != nil {
				return failures[i]
			}
			if begin+i*rowGroupLen >= r.Len() {
				break
			}
			if _, err := group.Commit(); err != nil {
				return err
			}
		}
	}
	return file.Close()
}

// encode encodes the flows from begin to end.
func encode(group *parquet.ConcurrentRowGroupWriter, r *flow.Result, begin, end int) error {
	writers := group.ColumnWriters()
	flows := make([]flow.Flow, batchLen)
	cells := newCells()
	reader := r.Reader()
	for ; begin < end; begin += batchLen {
		batch := flows[:min(batchLen, end-begin)]
		for i := range batch {
			reader.Read(begin+i, &batch[i])
		}
		for i, leaf := range leaves {
			if _, err := writers[i].WriteRowValues(cells.make(leaf, batch)); err != nil {
				return err
			}
		}
	}
	return nil
}
