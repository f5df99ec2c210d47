package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type dialLine struct {
	Kind                    string
	ID, VU                  int64
	TimeUS                  int64 `json:"time_us"`
	DurationUS              int64 `json:"duration_us"`
	Local, Remote           *string
	Error                   *string
	ErrorKind               *string `json:"error_kind"`
	BytesSent               int64   `json:"bytes_sent"`
	BytesReceived           int64   `json:"bytes_received"`
	Dials, Failed, Requests int64
}

type requestLine struct {
	Kind         string
	ID           int64
	VU           int64
	Iteration    int64
	Scenario     string
	Group        string
	Name         string
	Method       string
	URL          string
	Status       int
	ErrorCode    int `json:"error_code"`
	Error        *string
	TimeUS       int64 `json:"time_us"`
	EndUS        int64 `json:"end_us"`
	BlockedUS    int64 `json:"blocked_us"`
	ConnectingUS int64 `json:"connecting_us"`
	TLSUS        int64 `json:"tls_us"`
	WaitingUS    int64 `json:"waiting_us"`
	DurationUS   int64 `json:"duration_us"`
	Reused       bool
	Remote       *string
	Dial         *int64
	Protocol     string
	GRPCStatus   *int `json:"grpc_status"`

	SentAgain int   `json:"sent_again"`
	FirstDial int64 `json:"first_dial"`
	AgainUS   int64 `json:"again_us"`

	MessagesSent     int64 `json:"messages_sent"`
	MessagesReceived int64 `json:"messages_received"`

	Requests int64
}

type eventLine struct {
	Kind   string
	TimeUS int64 `json:"time_us"`
	VU     int64
	Name   string
	Data   struct {
		Number int64
		TurnUS int64 `json:"turn_us"`
	}
}

type liveLine struct {
	TimeUS                            int64 `json:"time_us"`
	VUs, Iterations, Requests, Failed int64
	DroppedIterations                 int64 `json:"dropped_iterations"`
	InterruptedIterations             int64 `json:"interrupted_iterations"`
	Errors                            map[string]int64
}

// record is all that a run left behind, each line valid by its schema.
type record struct {
	dials, closes []dialLine
	requests      []requestLine
	events        []eventLine
	live          []liveLine
	ended         bool
}

func (r *run) record(t *testing.T) record {
	t.Helper()
	var all record
	ends := 0
	for _, line := range lines[dialLine](t, r.raw, "dials") {
		switch line.Kind {
		case "dial":
			all.dials = append(all.dials, line)
		case "close":
			all.closes = append(all.closes, line)
		case "end":
			ends++
			if line.Dials != int64(len(all.dials)) || line.Failed != int64(len(failedDials(all.dials))) {
				t.Errorf("dials.jsonl ends with %+v after %d dials", line, len(all.dials))
			}
		}
	}
	for _, line := range lines[requestLine](t, r.raw, "requests") {
		switch line.Kind {
		case "":
			all.requests = append(all.requests, line)
			if line.ID != int64(len(all.requests)) {
				t.Errorf("request %d stands as number %d", line.ID, len(all.requests))
			}
		case "end":
			ends++
			if line.Requests != int64(len(all.requests)) {
				t.Errorf("requests.jsonl ends with %+v after %d requests", line, len(all.requests))
			}
		}
	}
	for _, line := range lines[eventLine](t, r.raw, "events") {
		switch line.Kind {
		case "":
			all.events = append(all.events, line)
		case "end":
			ends++
		}
	}
	all.live = lines[liveLine](t, r.raw, "live")
	if ends != 0 && ends != 3 {
		t.Errorf("%d files end with an end line: all or none must", ends)
	}
	all.ended = ends == 3
	return all
}

func failedDials(dials []dialLine) []dialLine {
	var failed []dialLine
	for _, dial := range dials {
		if dial.Error != nil {
			failed = append(failed, dial)
		}
	}
	return failed
}

func (r record) named(name string) []eventLine {
	var named []eventLine
	for _, event := range r.events {
		if event.Name == name {
			named = append(named, event)
		}
	}
	return named
}

func lines[Line any](t *testing.T, folder, name string) []Line {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, name)
	var all []Line
	for number, text := range bytes.SplitAfter(content, []byte("\n")) {
		if len(text) == 0 {
			continue
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = schema.Validate(value)
		}
		var line Line
		if err == nil {
			err = json.Unmarshal(text, &line)
		}
		if err != nil {
			t.Fatalf("%s.jsonl, line %d: %v\n%s", name, number+1, err, text)
		}
		all = append(all, line)
	}
	if len(content) > 0 && !strings.HasSuffix(string(content), "\n") {
		t.Errorf("%s.jsonl ends in the middle of a line", name)
	}
	return all
}

var compileSchema = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	folder := os.Getenv("CONNLAB_SCHEMAS")
	if folder == "" {
		folder = filepath.Join("..", "..", "schemas")
	}
	compiler := jsonschema.NewCompiler()
	schemas := make(map[string]*jsonschema.Schema)
	for _, name := range []string{"dials", "requests", "events", "live"} {
		schema, err := compiler.Compile(filepath.Join(folder, name+".schema.json"))
		if err != nil {
			return nil, err
		}
		schemas[name] = schema
	}
	return schemas, nil
})

func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	schemas, err := compileSchema()
	if err != nil {
		t.Fatal(err)
	}
	return schemas[name]
}
