package flowfile

import (
	"bytes"
	"encoding/json"
	command "flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = command.Bool("update", false, "write docs/flows.md and both schemas anew from the columns")

// repository returns the path of a file of the repository.
func repository(path ...string) string {
	schemas := os.Getenv("CONNLAB_SCHEMAS")
	if schemas == "" {
		schemas = "../../../schemas"
	}
	return filepath.Join(append([]string{schemas, ".."}, path...)...)
}

// tables are the marks around the tables of docs/flows.md, and the tables.
var tables = []struct {
	begin, end string
	table      func() string
}{
	{"<!-- columns: go test ./internal/flowfile -update -->\n", "<!-- end of columns -->\n", columnTable},
	{"<!-- packet columns: go test ./internal/flowfile -update -->\n", "<!-- end of packet columns -->\n", packetColumnTable},
}

func TestTheDocumentHasEveryColumn(t *testing.T) {
	path := repository("docs", "flows.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(document)
	for _, each := range tables {
		before, rest, found := strings.Cut(want, each.begin)
		_, after, closed := strings.Cut(rest, each.end)
		if !found || !closed {
			t.Fatalf("%s lacks the marks %s and %s", path, each.begin, each.end)
		}
		want = before + each.begin + each.table() + each.end + after
	}
	mustStand(t, path, []byte(want))
}

func TestTheSchemasHaveEveryColumn(t *testing.T) {
	for name, schema := range map[string]object{"flows": jsonSchema(), "packets": packetsJSONSchema()} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(schema); err != nil {
			t.Fatal(err)
		}
		mustStand(t, repository("schemas", name+".schema.json"), text.Bytes())
	}
}

func mustStand(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the columns say (%v); go test ./internal/flowfile -update writes it anew", path, err)
	}
}

const tableHead = "| column | type | unit | meaning |\n|---|---|---|---|\n"

// columnTable returns the columns as Markdown.
func columnTable() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for i := range columns {
		c := &columns[i]
		unit := c.unit
		if c.isTime() {
			unit = "µs"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.fullName(), c.typeName(), unit, c.meaning)
	}
	return b.String()
}

// packetColumnTable returns the columns of packets as Markdown.
func packetColumnTable() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, c := range packetColumns {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.name, c.typeName(), c.unit, c.meaning)
	}
	return b.String()
}

func (c *packetColumn) typeName() string {
	switch c.get.(type) {
	case packetNumber:
		return "integer"
	case maybePacketNumber:
		return "integer or null"
	case packetSide:
		return "`client`, `server`"
	case packetFlags:
		return "list of `" + strings.Join(flagNames, "`, `") + "`"
	case packetText:
		return "text or null"
	}
	panic("a column without a getter")
}

// typeName says what values a column has.
func (c *column) typeName() string {
	switch get := c.get.(type) {
	case number, instant:
		return "integer"
	case maybeNumber, maybeInstant, duration:
		return "integer or null"
	case instants:
		return "list of integers"
	case flag:
		return "boolean"
	case address:
		return "string"
	case choice:
		words := "`" + strings.Join(get.words, "`, `") + "`"
		if get.nullable {
			return words + " or null"
		}
		return words
	}
	panic("a column without a getter")
}

// object is a JSON object whose fields stay in their order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:", m.name)
		var value bytes.Buffer
		encoder := json.NewEncoder(&value)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
		b = append(b, bytes.TrimSpace(value.Bytes())...)
	}
	return append(b, '}'), nil
}

func jsonSchema() object {
	fine, flow := object{}, object{{"kind", object{{"const", "flow"}}}}
	for i := range columns {
		c := &columns[i]
		flow = append(flow, member{c.fullName(), c.schema("Microseconds")})
		if c.isTime() {
			fine = append(fine, member{c.fineName(), c.schema("Nanoseconds")})
		}
	}
	inNs := strict(fine)
	inNs[0].value = []string{"object", "null"}
	flow = append(flow, member{fineGroup, append(object{{"description",
		"The times in nanoseconds; null unless some packet's clock ticks finer than a microsecond."}}, inNs...)})
	return lines(Schema, "--json", "flow", flow, reflect.TypeFor[summary](), "One line for each TCP connection of a capture, in the order of the first packets. First line: header. Last line: end; without it the file is not whole. The Parquet file has the same columns as a flow without its kind, and the last line in its metadata as "+summaryKey+".")
}

func packetsJSONSchema() object {
	fields := object{{"kind", object{{"const", "packet"}}}}
	for _, c := range packetColumns {
		s := object{{"description", c.meaning}}
		switch c.get.(type) {
		case packetNumber:
			s = append(s, member{"type", "integer"})
		case maybePacketNumber:
			s = append(s, member{"type", []string{"integer", "null"}})
		case packetSide:
			s = append(s, member{"enum", []string{"client", "server"}})
		case packetText:
			s = append(s, member{"type", []string{"string", "null"}})
		case packetFlags:
			s = append(s, member{"type", "array"}, member{"items", object{{"enum", flagNames}}})
		}
		fields = append(fields, member{c.name, s})
	}
	return lines(PacketsSchema, "--packets", "packet", fields, reflect.TypeFor[packetSummary](), "One line for each packet of each chosen connection, in the order of the capture. First line: header. Last line: end; without it the file is not whole.")
}

// lines returns the schema of what the program writes with an option: a header,
// records of a kind, and an end.
func lines(schema, option, kind string, record object, end reflect.Type, description string) object {
	return object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", schema + ": one line of flows " + option},
		{"description", description},
		{"oneOf", []object{{{"$ref", "#/$defs/header"}}, {{"$ref", "#/$defs/" + kind}}, {{"$ref", "#/$defs/end"}}}},
		{"$defs", object{
			{"header", strict(object{{"kind", object{{"const", "header"}}}, {"schema", object{{"const", schema}}}})},
			{kind, strict(record)},
			{"end", strict(endSchema(end))},
		}},
	}
}

// strict returns the schema of an object that has all of the properties and no
// others.
func strict(properties object) object {
	var names []string
	for _, p := range properties {
		names = append(names, p.name)
	}
	return object{{"type", "object"}, {"additionalProperties", false}, {"required", names}, {"properties", properties}}
}

func (c *column) schema(unit string) object {
	meaning := c.meaning
	switch {
	case c.isTime() && c.name == "handshake":
		meaning += " " + unit + "."
	case c.isTime():
		meaning += " " + unit + " since the Unix epoch."
	}
	s := object{{"description", meaning}}
	switch get := c.get.(type) {
	case number:
		return append(s, member{"type", "integer"}, member{"minimum", 0})
	case maybeNumber:
		return append(s, member{"type", []string{"integer", "null"}}, member{"minimum", 0})
	case instant:
		return append(s, member{"type", "integer"})
	case maybeInstant, duration:
		return append(s, member{"type", []string{"integer", "null"}})
	case instants:
		return append(s, member{"type", "array"}, member{"maxItems", 256}, member{"items", object{{"type", "integer"}}})
	case flag:
		return append(s, member{"type", "boolean"})
	case address:
		return append(s, member{"type", "string"})
	case choice:
		var words []any
		for _, word := range get.words {
			words = append(words, word)
		}
		if get.nullable {
			words = append(words, nil)
		}
		return append(s, member{"enum", words})
	}
	panic("a column without a getter")
}

// endSchema describes the summary by its struct.
func endSchema(summary reflect.Type) object {
	properties := object{}
	for i := range summary.NumField() {
		field := summary.Field(i)
		var s object
		switch field.Type.Kind() {
		case reflect.String:
			s = object{{"const", "end"}}
		case reflect.Bool:
			s = object{{"description", "Every capture was read to its end."}, {"type", "boolean"}}
		case reflect.Slice:
			count := object{{"type", "integer"}, {"minimum", 0}}
			s = object{{"description", "Captures that could not be read to their end: the file, from 1 in the order given, and from which byte on, and why."},
				{"type", "array"}, {"items", strict(object{{"file", count}, {"byte", count}, {"why", object{{"type", "string"}}}})}}
		case reflect.Pointer:
			s = object{{"type", []string{"integer", "null"}}}
		default:
			s = object{{"type", "integer"}, {"minimum", 0}}
		}
		properties = append(properties, member{field.Tag.Get("json"), s})
	}
	return properties
}
