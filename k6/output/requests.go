package output

import (
	"errors"
	"strconv"
	"time"

	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"

	"connlab/k6/dial"
	"connlab/k6/exchange"
	"connlab/k6/record"
)

// tagCacheMax bounds the cache, because a script may use a different URL for each request.
const tagCacheMax = 10_000

var errNotFollowed = errors.New(
	"a request was made outside the record of dials: the script must import k6/x/connlab")

// requests encodes k6's trails as the lines of requests.jsonl. It is not safe for concurrent use.
type requests struct {
	lastID uint64
	// Many fields come from tags, and k6 has one TagSet for all requests with the same tags.
	tags map[*metrics.TagSet]encodedTags
}

// encodedTags are the fields that come from tags, as JSON.
type encodedTags struct {
	json []byte
	// ofVU is false for what setup() and teardown() do, outside any VU.
	ofVU bool
}

func newRequests() *requests { return &requests{tags: make(map[*metrics.TagSet]encodedTags)} }

// appendLines appends a line for each trail among the containers.
func (r *requests) appendLines(lines []byte, containers []metrics.SampleContainer) ([]byte, error) {
	var err error
	for _, container := range containers {
		trail, isRequest := container.(*httpext.Trail)
		if !isRequest {
			continue
		}
		tags := r.encode(trail.Tags)
		attempt, followed := trail.ConnRemoteAddr.(*dial.Attempt)
		if !followed {
			if tags.ofVU {
				err = errNotFollowed
			}
			attempt = &dial.Attempt{Start: trail.EndTime.Add(-trail.Blocked - trail.Duration)}
		}
		lines = r.appendLine(lines, trail, attempt, tags.json)
	}
	return lines, err
}

func (r *requests) appendLine(lines []byte, trail *httpext.Trail, attempt *dial.Attempt, tags []byte) []byte {
	r.lastID++
	lines = strconv.AppendUint(append(lines, `{"id":`...), r.lastID, 10)
	lines = strconv.AppendUint(append(lines, `,"vu":`...), attempt.VU, 10)
	lines = strconv.AppendInt(append(lines, `,"iteration":`...), attempt.Iteration, 10)
	lines = append(lines, tags...)
	lines = record.AppendTime(append(lines, `,"time_us":`...), attempt.Start)
	lines = record.AppendTime(append(lines, `,"end_us":`...), trail.EndTime)
	took := timesOf(trail, attempt)
	lines = record.AppendMicroseconds(append(lines, `,"blocked_us":`...), took.blocked)
	lines = record.AppendMicroseconds(append(lines, `,"connecting_us":`...), attempt.Connecting())
	lines = record.AppendMicroseconds(append(lines, `,"tls_us":`...), took.tls)
	lines = record.AppendMicroseconds(append(lines, `,"sending_us":`...), took.sending)
	lines = record.AppendMicroseconds(append(lines, `,"waiting_us":`...), took.waiting)
	lines = record.AppendMicroseconds(append(lines, `,"receiving_us":`...), trail.Receiving)
	lines = record.AppendMicroseconds(
		append(lines, `,"duration_us":`...), took.sending+took.waiting+trail.Receiving)
	lines = appendConnection(lines, attempt)
	if attempt.HTTP2() {
		lines = append(lines, `,"protocol":"http2"`...)
	}
	return append(appendSentAgain(lines, attempt), "}\n"...)
}

type times struct{ blocked, tls, sending, waiting time.Duration }

// timesOf are k6's own times of a request, but for HTTP/2. A request may leave on a connection that another one's dial
// made, while its own dial goes on: k6 then has the times of that dial, a negative time to send, and over HTTP/2 sometimes
// no time that it was blocked. What a request of HTTP/2 waited for until it left, its attempt knows.
func timesOf(trail *httpext.Trail, attempt *dial.Attempt) times {
	if !attempt.HTTP2() {
		// A request that leaves before its own dial's handshake ends waited for a handshake until it left, and no longer.
		if late := trail.Sending; late < 0 {
			return times{trail.Blocked, max(trail.TLSHandshaking+late, 0), 0, trail.Waiting}
		}
		return times{trail.Blocked, trail.TLSHandshaking, trail.Sending, trail.Waiting}
	}
	own := times{blocked: attempt.Blocked()}
	own.waiting = max(trail.EndTime.Sub(attempt.Start)-own.blocked-trail.Receiving, 0)
	if !attempt.Reused() {
		own.tls = min(trail.TLSHandshaking, own.blocked)
	}
	return own
}

// appendExchange appends the line of a WebSocket session or a gRPC call.
func (r *requests) appendExchange(lines []byte, of *exchange.Exchange, done exchange.Outcome) []byte {
	r.lastID++
	attempt := of.Attempt()
	lines = strconv.AppendUint(append(lines, `{"id":`...), r.lastID, 10)
	lines = strconv.AppendUint(append(lines, `,"vu":`...), attempt.VU, 10)
	lines = strconv.AppendInt(append(lines, `,"iteration":`...), attempt.Iteration, 10)
	for _, name := range []string{"scenario", "group", "name"} {
		value, _ := done.Tags.Get(name)
		lines = record.AppendString(append(lines, `,"`+name+`":`...), value)
	}
	lines = record.AppendString(append(lines, `,"method":`...), of.Method)
	lines = record.AppendString(append(lines, `,"url":`...), done.URL)
	lines = strconv.AppendInt(append(lines, `,"status":`...), int64(done.Status), 10)
	lines = strconv.AppendInt(append(lines, `,"error_code":`...), int64(done.ErrorCode), 10)
	lines = record.AppendStringOrNull(append(lines, `,"error":`...), done.Error)
	lines = record.AppendTime(append(lines, `,"time_us":`...), attempt.Start)
	lines = record.AppendTime(append(lines, `,"end_us":`...), done.End)
	connecting := time.Duration(0)
	if of.Protocol == exchange.WebSocket {
		connecting = attempt.Connecting()
	}
	lines = record.AppendMicroseconds(append(lines, `,"blocked_us":`...), done.Blocked)
	lines = record.AppendMicroseconds(append(lines, `,"connecting_us":`...), connecting)
	lines = record.AppendMicroseconds(append(lines, `,"tls_us":`...), done.TLS)
	lines = append(lines, `,"sending_us":0`...)
	lines = record.AppendMicroseconds(append(lines, `,"waiting_us":`...), done.Waiting)
	lines = record.AppendMicroseconds(append(lines, `,"receiving_us":`...), done.Receiving)
	lines = record.AppendMicroseconds(append(lines, `,"duration_us":`...), done.Waiting+done.Receiving)
	lines = appendConnection(lines, attempt)
	lines = record.AppendString(append(lines, `,"protocol":`...), of.Protocol)
	if of.Protocol == exchange.GRPC {
		lines = strconv.AppendInt(append(lines, `,"grpc_status":`...), int64(done.GRPCStatus), 10)
	}
	lines = strconv.AppendInt(append(lines, `,"messages_sent":`...), done.Sent, 10)
	lines = strconv.AppendInt(append(lines, `,"messages_received":`...), done.Received, 10)
	return append(appendSentAgain(lines, attempt), "}\n"...)
}

func appendSentAgain(lines []byte, attempt *dial.Attempt) []byte {
	times, first, in := attempt.SentAgain()
	if times == 0 {
		return lines
	}
	lines = strconv.AppendInt(append(lines, `,"sent_again":`...), int64(times), 10)
	lines = strconv.AppendUint(append(lines, `,"first_dial":`...), first, 10)
	return record.AppendMicroseconds(append(lines, `,"again_us":`...), in)
}

func appendConnection(lines []byte, attempt *dial.Attempt) []byte {
	lines = strconv.AppendBool(append(lines, `,"reused":`...), attempt.Reused())
	lines = record.AppendStringOrNull(append(lines, `,"remote":`...), attempt.String())
	lines = append(lines, `,"dial":`...)
	if id := attempt.DialID(); id != 0 {
		return strconv.AppendUint(lines, id, 10)
	}
	return append(lines, "null"...)
}

func (r *requests) encode(tags *metrics.TagSet) encodedTags {
	encoded, known := r.tags[tags]
	if !known {
		if len(r.tags) >= tagCacheMax {
			clear(r.tags)
		}
		encoded = encodeTags(tags)
		r.tags[tags] = encoded
	}
	return encoded
}

func encodeTags(tags *metrics.TagSet) encodedTags {
	text := func(name string) string {
		value, _ := tags.Get(name)
		return value
	}
	number := func(name string) string {
		if value := text(name); value != "" {
			return value
		}
		return "0"
	}
	url := text("url")
	if url == "" {
		// Without a tag of its own the URL is the request's name.
		url = text("name")
	}
	scenario := text("scenario")
	encoded := record.AppendString([]byte(`,"scenario":`), scenario)
	encoded = record.AppendString(append(encoded, `,"group":`...), text("group"))
	encoded = record.AppendString(append(encoded, `,"name":`...), text("name"))
	encoded = record.AppendString(append(encoded, `,"method":`...), text("method"))
	encoded = record.AppendString(append(encoded, `,"url":`...), url)
	encoded = append(append(encoded, `,"status":`...), number("status")...)
	encoded = append(append(encoded, `,"error_code":`...), number("error_code")...)
	encoded = record.AppendStringOrNull(append(encoded, `,"error":`...), text("error"))
	return encodedTags{json: encoded, ofVU: scenario != ""}
}
