// Package access writes what the gateway did for each request, in the formats of nginx's own logs.
package access

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connlab/gateway/internal/journal"
	"connlab/gateway/internal/secure"
)

// A Try is one use, or attempted use, of a connection to an upstream server. A request has several if Go's transport
// finds that a kept connection was closed, and takes another.
type Try struct {
	Server string // address:port
	Status int    // 0: none
	// Since the try began; negative: it did not reach this stage.
	Connected, Header, Ended time.Duration

	Sent, Received int64
	Shared         bool   // with other requests at the same time: the bytes are not known
	Connection     int64  // the dial's number in dials.jsonl, also of one that failed; 0: none was known
	Requests       int64  // that got the connection so far
	Local          string // the gateway's end
	Reused         bool   // as net/http/httptrace has it
}

// A Request is one request, when it ended.
type Request struct {
	Ended          time.Time
	Took           time.Duration
	Connection     int64
	Number         int64 // on its connection
	RemoteAddress  string
	RemotePort     int
	Method         string
	URI            string
	Protocol       string
	TLS            *tls.ConnectionState // nil without TLS
	Received, Sent int64
	BodySent       int64
	Complete       bool
	Status         int
	Tries          []Try
}

// line has nginx's names of variables, in the order of nginx's own log in the lab, and the gateway's own after them.
type line struct {
	TimeMs                     int64       `json:"time_ms"`
	Connection                 int64       `json:"connection"`
	ConnectionRequests         int64       `json:"connection_requests"`
	RemoteAddr                 string      `json:"remote_addr"`
	RemotePort                 int         `json:"remote_port"`
	Pipe                       string      `json:"pipe"`
	RequestMethod              string      `json:"request_method"`
	RequestURI                 string      `json:"request_uri"`
	ServerProtocol             string      `json:"server_protocol"`
	SSLProtocol                string      `json:"ssl_protocol"`
	SSLSessionReused           string      `json:"ssl_session_reused"`
	RequestLength              int64       `json:"request_length"`
	RequestTime                json.Number `json:"request_time"`
	RequestCompletion          string      `json:"request_completion"`
	Status                     int         `json:"status"`
	BytesSent                  int64       `json:"bytes_sent"`
	BodyBytesSent              int64       `json:"body_bytes_sent"`
	UpstreamAddr               string      `json:"upstream_addr"`
	UpstreamStatus             string      `json:"upstream_status"`
	UpstreamConnectTime        string      `json:"upstream_connect_time"`
	UpstreamHeaderTime         string      `json:"upstream_header_time"`
	UpstreamResponseTime       string      `json:"upstream_response_time"`
	UpstreamBytesSent          string      `json:"upstream_bytes_sent"`
	UpstreamBytesReceived      string      `json:"upstream_bytes_received"`
	UpstreamLocalAddr          string      `json:"upstream_local_addr"`
	UpstreamConnection         string      `json:"upstream_connection"`
	UpstreamConnectionRequests string      `json:"upstream_connection_requests"`
	UpstreamReused             string      `json:"upstream_reused"`
}

// A Log is an access.jsonl.
type Log struct {
	file *journal.File
}

// NewLog writes to a file.
func NewLog(file *journal.File) *Log { return &Log{file} }

// Write adds a request's line.
func (l *Log) Write(r *Request) {
	tries := func(text func(Try) string) string {
		texts := make([]string, len(r.Tries))
		for i, try := range r.Tries {
			texts[i] = text(try)
		}
		return strings.Join(texts, ", ")
	}
	protocol, reused := "", ""
	if r.TLS != nil {
		protocol, reused = secure.VersionName(r.TLS.Version), "."
		if r.TLS.DidResume {
			reused = "r"
		}
	}
	completion := ""
	if r.Complete {
		completion = "OK"
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a query keeps its '&'
	err := encoder.Encode(line{
		TimeMs: r.Ended.UnixMilli(), Connection: r.Connection, ConnectionRequests: r.Number,
		RemoteAddr: r.RemoteAddress, RemotePort: r.RemotePort, Pipe: ".",
		RequestMethod: r.Method, RequestURI: r.URI, ServerProtocol: r.Protocol,
		SSLProtocol: protocol, SSLSessionReused: reused, RequestLength: r.Received,
		RequestTime: json.Number(seconds(r.Took)), RequestCompletion: completion, Status: r.Status,
		BytesSent: r.Sent, BodyBytesSent: r.BodySent,
		UpstreamAddr:               tries(func(t Try) string { return t.Server }),
		UpstreamStatus:             tries(func(t Try) string { return number(int64(t.Status)) }),
		UpstreamConnectTime:        tries(func(t Try) string { return seconds(t.Connected) }),
		UpstreamHeaderTime:         tries(func(t Try) string { return seconds(t.Header) }),
		UpstreamResponseTime:       tries(func(t Try) string { return seconds(t.Ended) }),
		UpstreamBytesSent:          tries(func(t Try) string { return bytesOf(t, t.Sent) }),
		UpstreamBytesReceived:      tries(func(t Try) string { return bytesOf(t, t.Received) }),
		UpstreamLocalAddr:          tries(func(t Try) string { return orDash(t.Local) }),
		UpstreamConnection:         tries(func(t Try) string { return number(t.Connection) }),
		UpstreamConnectionRequests: tries(func(t Try) string { return number(t.Requests) }),
		UpstreamReused: tries(func(t Try) string {
			if t.Requests == 0 {
				return "-"
			}
			return strconv.FormatBool(t.Reused)
		}),
	})
	if err != nil {
		panic(fmt.Sprintf("a line of access.jsonl that is not JSON: %v", err)) // its fields are numbers and texts
	}
	l.file.Append(func(lines []byte) []byte { return append(lines, text.Bytes()...) })
}

// seconds has three decimals, as nginx's times; a stage that was not reached is "-".
func seconds(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%03d", d/time.Second, d%time.Second/time.Millisecond)
}

func bytesOf(t Try, count int64) string {
	if t.Shared {
		return "-"
	}
	return strconv.FormatInt(count, 10)
}

func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
