package output

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"
	"gopkg.in/guregu/null.v3"

	"connlab/k6/dial"
)

func tagSet(tags map[string]string) *metrics.TagSet {
	return metrics.NewRegistry().RootTagSet().WithTagsFromMap(tags)
}

func lineOf(t *testing.T, encoder *requests, trail *httpext.Trail) (map[string]any, error) {
	t.Helper()
	text, err := encoder.appendLines(nil, []metrics.SampleContainer{metrics.Samples{}, trail})
	var line map[string]any
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return line, err
}

func TestTagsThatK6DoesNotSet(t *testing.T) {
	attempt := &dial.Attempt{VU: 3, Iteration: 4, Start: time.Unix(1, 0)}
	line, err := lineOf(t, newRequests(), &httpext.Trail{
		Tags: tagSet(map[string]string{"scenario": "users", "name": `a "name"`, "method": "GET"}), ConnRemoteAddr: attempt,
	})
	if err != nil {
		t.Fatal(err)
	}
	for field, wanted := range map[string]any{
		"url": `a "name"`, "status": 0.0, "error_code": 0.0, "error": nil, "remote": nil, "dial": nil, "reused": false,
		"vu": 3.0, "iteration": 4.0, "time_us": 1e6,
	} {
		if line[field] != wanted {
			t.Errorf("%s is %v, not %v", field, line[field], wanted)
		}
	}
}

func TestRequestsOutsideTheRecordOfDials(t *testing.T) {
	end := time.Unix(10, 0)
	trail := &httpext.Trail{EndTime: end, Blocked: time.Second, Duration: 2 * time.Second}
	trail.Tags = tagSet(map[string]string{"name": "setup"})
	if line, err := lineOf(t, newRequests(), trail); err != nil || line["vu"] != 0.0 || line["time_us"] != 7e6 {
		t.Errorf("in setup(): %v, %v", line, err)
	}
	trail.Tags = tagSet(map[string]string{"name": "call", "scenario": "users"})
	if _, err := lineOf(t, newRequests(), trail); err == nil {
		t.Error("a user's request without its dial was taken")
	}
}

func TestManySetsOfTagsDoNotFillTheMemory(t *testing.T) {
	encoder := newRequests()
	root := metrics.NewRegistry().RootTagSet()
	for n := range tagCacheMax + 10 {
		name := strconv.Itoa(n)
		line, _ := lineOf(t, encoder, &httpext.Trail{Tags: root.With("name", name)})
		if line["name"] != name {
			t.Fatalf("%q became %v", name, line["name"])
		}
	}
	if len(encoder.tags) > tagCacheMax {
		t.Errorf("%d are kept", len(encoder.tags))
	}
}

func TestAScriptMaySayItselfWhichAnswersFail(t *testing.T) {
	notFound := tagSet(map[string]string{"error_code": "1404"})
	ok := tagSet(nil)
	for _, c := range []struct {
		name   string
		tags   *metrics.TagSet
		failed null.Bool
		counts int64
	}{
		{"an answer that was not expected", notFound, null.BoolFrom(true), 1},
		{"an error status that was expected", notFound, null.BoolFrom(false), 0},
		{"a good status that was not expected", ok, null.BoolFrom(true), 1},
		{"a failure, where the script has no say", notFound, null.Bool{}, 1},
		{"a success, where the script has no say", ok, null.Bool{}, 0},
	} {
		counts := newCounts()
		counts.add([]metrics.SampleContainer{&httpext.Trail{Tags: c.tags, Failed: c.failed}}, nil, nil)
		if counts.failed != c.counts || counts.requests != 1 {
			t.Errorf("%s: %d of %d failed", c.name, counts.failed, counts.requests)
		}
	}
}

func TestARequestThatLeftBeforeItsOwnHandshakeEnded(t *testing.T) {
	attempt := &dial.Attempt{VU: 1, Start: time.Unix(1, 0)}
	trail := &httpext.Trail{
		Tags: tagSet(map[string]string{"scenario": "pages"}), ConnRemoteAddr: attempt,
		TLSHandshaking: 9 * time.Millisecond, Sending: -3 * time.Millisecond, Waiting: 5 * time.Millisecond,
		Receiving: time.Millisecond, Duration: 3 * time.Millisecond,
	}
	line, err := lineOf(t, newRequests(), trail)
	if err != nil {
		t.Fatal(err)
	}
	for field, wanted := range map[string]any{"tls_us": 6000.0, "sending_us": 0.0, "duration_us": 6000.0} {
		if line[field] != wanted {
			t.Errorf("%s is %v, not %v", field, line[field], wanted)
		}
	}
}
