package flowfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"connlab/collector/internal/excerpt"
	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowfile"
	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/pcapfile"
	"connlab/collector/internal/schematest"
)

// reduced returns a capture of many flows, reduced.
func reduced(t testing.TB, format flowtest.Format, connections int) *flow.Result {
	t.Helper()
	traffic := flowtest.Traffic{Connections: connections, Exchanges: 5, GapUs: 500, Faulty: true}
	packets := flowtest.Packets(flowtest.Ethernet, traffic.Segments(rand.New(rand.NewPCG(3, 4))))
	capture := flowtest.Capture(format, flowtest.Ethernet.Type, 128, packets)
	file, err := pcapfile.Open(flowtest.Save(t, capture[:len(capture)-3])) // the last packet is cut
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	result, err := flow.Reduce([]*pcapfile.File{file})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func jsonLines(t testing.TB, r *flow.Result) [][]byte {
	t.Helper()
	var out bytes.Buffer
	if err := flowfile.WriteJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
}

func TestEveryLineFollowsTheSchema(t *testing.T) {
	for _, format := range []flowtest.Format{flowtest.Formats[0], flowtest.Formats[2]} {
		for _, line := range jsonLines(t, reduced(t, format, 200)) {
			schematest.Validate(t, "flows", line)
		}
	}
}

func TestParquetHasWhatTheLinesHave(t *testing.T) {
	for _, format := range []flowtest.Format{flowtest.Formats[0], flowtest.Formats[2]} {
		result := reduced(t, format, 200)
		lines := jsonLines(t, result)
		var out bytes.Buffer
		if err := flowfile.WriteParquet(&out, result); err != nil {
			t.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if about, _ := file.Lookup("connlab.summary"); about != string(lines[len(lines)-1]) {
			t.Errorf("the metadata's summary is %s", about)
		}
		if schema, _ := file.Lookup("connlab.schema"); schema != flowfile.Schema {
			t.Errorf("the metadata's schema is %q", schema)
		}
		lines = lines[1 : len(lines)-1]
		if int(file.NumRows()) != len(lines) || len(lines) != result.Len() {
			t.Fatalf("%d rows, %d lines, %d flows", file.NumRows(), len(lines), result.Len())
		}
		rows := parquet.NewReader(file)
		for i := range lines {
			var want map[string]any
			numbers := json.NewDecoder(bytes.NewReader(lines[i]))
			numbers.UseNumber()
			if err := numbers.Decode(&want); err != nil {
				t.Fatal(err)
			}
			delete(want, "kind")
			got := map[string]any{}
			if err := rows.Read(&got); err != nil {
				t.Fatal(err)
			}
			if a, b := canonical(got), canonical(want); a != b {
				t.Fatalf("row %d:\n%s\nline:\n%s", i+1, a, b)
			}
		}
	}
}

// canonical writes a value so that those of both files are comparable: a
// Parquet list reads as {list: [{element: …}]}, and null as an absence.
func canonical(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []byte:
		return string(v)
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, canonical(e))
		}
		return "[" + strings.Join(all, " ") + "]"
	case map[string]any:
		if list, ok := v["list"]; ok {
			return canonical(list)
		}
		if element, ok := v["element"]; ok {
			return canonical(element)
		}
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if value := canonical(v[name]); value != "null" {
				all = append(all, name+"="+value)
			}
		}
		if len(all) == 0 {
			return "null"
		}
		return "{" + strings.Join(all, "\n") + "}"
	}
	return fmt.Sprint(v)
}

func TestTheSameCaptureGivesTheSameBytes(t *testing.T) {
	var files [2]bytes.Buffer
	for i := range files {
		// Enough for several row groups, which are made side by side.
		if err := flowfile.WriteParquet(&files[i], reduced(t, flowtest.Pcap, 8000)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
		t.Errorf("two files differ: %d and %d bytes", files[0].Len(), files[1].Len())
	}
}

// full is a disk without room.
type full struct{ room int }

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, errFull
	}
	f.room -= len(p)
	return len(p), nil
}

func TestAFullDiskIsAnError(t *testing.T) {
	result := reduced(t, flowtest.Pcap, 200)
	for name, write := range map[string]func(io.Writer, *flow.Result) error{
		"JSON": flowfile.WriteJSON, "Parquet": flowfile.WriteParquet,
	} {
		for _, room := range []int{0, 1000} {
			if err := write(&full{room}, result); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d bytes: %v", name, room, err)
			}
		}
	}
}

func TestEveryLineOfPacketsFollowsTheSchema(t *testing.T) {
	for _, format := range []flowtest.Format{flowtest.Formats[0], flowtest.Formats[2]} {
		c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8080", 1, 2).Open().Data(flowtest.Client, 1000).RST(flowtest.Server)
		c.Send(flowtest.Client, 0xff, 0)
		capture := flowtest.Capture(format, flowtest.Ethernet.Type, 128, flowtest.Packets(flowtest.Ethernet, c.Segments))
		file, err := pcapfile.Open(flowtest.Save(t, capture[:len(capture)-3]))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		chosen := []excerpt.Connection{{ID: 1, Client: c.Ends[0], Server: c.Ends[1], LastUs: 1 << 60}}
		var out bytes.Buffer
		writer := flowfile.NewPacketWriter(&out)
		summary, err := excerpt.Read([]*pcapfile.File{file}, chosen, writer.Write)
		if err := errors.Join(err, writer.End(summary)); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
		if len(lines) != 1+5+1 {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines {
			schematest.Validate(t, "packets", line)
		}
	}
}
