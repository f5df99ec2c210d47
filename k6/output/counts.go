package output

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"

	"connlab/k6/exchange"
	"connlab/k6/record"
)

// counts are the run's totals up to now, for live.jsonl.
type counts struct {
	mu         sync.Mutex
	vus        int64
	iterations int64
	dropped    int64
	requests   int64
	failed     int64
	errors     map[string]int64 // by k6's error code
}

func newCounts() *counts { return &counts{errors: make(map[string]int64)} }

// add counts samples; those that are of no HTTP request it also hands to observe.
func (c *counts) add(
	containers []metrics.SampleContainer, builtin *metrics.BuiltinMetrics,
	observe func(metrics.Sample, *metrics.BuiltinMetrics),
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, container := range containers {
		if trail, isRequest := container.(*httpext.Trail); isRequest {
			c.addRequest(trail)
			continue
		}
		for _, sample := range container.GetSamples() {
			switch sample.Metric {
			case builtin.VUs:
				c.vus = int64(sample.Value)
			case builtin.Iterations:
				c.iterations += int64(sample.Value)
			case builtin.DroppedIterations:
				c.dropped += int64(sample.Value)
			default:
				observe(sample, builtin)
			}
		}
	}
}

func (c *counts) addRequest(trail *httpext.Trail) {
	c.requests++
	code, broken := trail.Tags.Get("error_code")
	if broken {
		c.errors[code]++
	}
	// A script may say itself which answers it expects (http.setResponseCallback).
	if trail.Failed.Bool || (broken && !trail.Failed.Valid) {
		c.failed++
	}
}

func (c *counts) addExchange(done exchange.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if done.ErrorCode != 0 {
		c.failed++
		c.errors[strconv.Itoa(done.ErrorCode)]++
	}
}

func (c *counts) appendLine(lines []byte, at time.Time, interrupted uint64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines = record.AppendTime(append(lines, `{"time_us":`...), at)
	lines = strconv.AppendInt(append(lines, `,"vus":`...), c.vus, 10)
	lines = strconv.AppendInt(append(lines, `,"iterations":`...), c.iterations, 10)
	lines = strconv.AppendInt(append(lines, `,"requests":`...), c.requests, 10)
	lines = strconv.AppendInt(append(lines, `,"failed":`...), c.failed, 10)
	lines = strconv.AppendInt(append(lines, `,"dropped_iterations":`...), c.dropped, 10)
	lines = strconv.AppendUint(append(lines, `,"interrupted_iterations":`...), interrupted, 10)
	lines = append(lines, `,"errors":{`...)
	for i, code := range slices.Sorted(maps.Keys(c.errors)) {
		if i > 0 {
			lines = append(lines, ',')
		}
		lines = record.AppendString(lines, code)
		lines = strconv.AppendInt(append(lines, ':'), c.errors[code], 10)
	}
	return append(lines, "}}\n"...)
}
