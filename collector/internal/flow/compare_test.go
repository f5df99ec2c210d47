package flow_test

import (
	"reflect"
	"testing"

	"connlab/collector/internal/flow"
	"connlab/collector/internal/pcapfile"
)

// reduceFile reduces a capture and returns copies of all flows.
func reduceFile(t testing.TB, path string) ([]flow.Flow, flow.Summary) {
	t.Helper()
	file, err := pcapfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	result, err := flow.Reduce([]*pcapfile.File{file})
	if err != nil {
		t.Fatal(err)
	}
	flows := make([]flow.Flow, result.Len())
	reader := result.Reader()
	for i := range flows {
		reader.Read(i, &flows[i])
	}
	return flows, result.Summary
}

// compare reports each field in which a flow differs from the one expected, and
// whether there is none.
func compare(t testing.TB, what string, got, want flow.Flow) bool {
	t.Helper()
	return compareStructs(t, what, reflect.ValueOf(got), reflect.ValueOf(want))
}

func compareStructs(t testing.TB, where string, got, want reflect.Value) bool {
	t.Helper()
	same := true
	for i := range got.NumField() {
		name := where + " " + got.Type().Field(i).Name
		g, w := got.Field(i), want.Field(i)
		switch {
		case g.Type() == reflect.TypeFor[flow.End]():
			same = compareStructs(t, name, g, w) && same
		case g.Kind() == reflect.Slice && g.Len() == 0 && w.Len() == 0:
		case !reflect.DeepEqual(g.Interface(), w.Interface()):
			t.Errorf("%s is %v, want %v", name, g.Interface(), w.Interface())
			same = false
		}
	}
	return same
}
