package metrics

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"connlab/collector/internal/latest"
	"connlab/collector/internal/procnet"
	"connlab/collector/internal/sockdiag"
)

var labels = []Label{{"instance", "backend-1"}, {"run", "r1"}, {"role", "backend"}}

func reading() latest.Reading {
	address := netip.MustParseAddr("0.0.0.0")
	return latest.Reading{
		Time: time.UnixMicro(1_700_000_000_250_000),
		Counters: []procnet.Counter{
			{Name: "TcpExt.ListenOverflows", Value: 7}, {Name: "Tcp.CurrEstab", Value: 4}, {Name: "Tcp.MaxConn", Value: -1},
			{Name: "sockstat.TCP.tw", Value: 9}, {Name: "sockstat6.TCP6.inuse", Value: 2},
		},
		// Two sockets of one port, as nginx's workers have them.
		Listeners: []sockdiag.Listener{
			{Address: address, Port: 8080, Depth: 3, Limit: 2, Drops: 5}, {Address: address, Port: 8080, Depth: 1, Limit: 2, Drops: 6},
		},
		Sockets:      map[latest.Kind]int{{State: sockdiag.Established, Side: sockdiag.Server}: 11},
		SocketsKnown: true,
		CPU:          1500 * time.Millisecond,
		CPUKnown:     true,
		Sampler: latest.Sampler{
			Ticks: 20, LateTicks: 2, Gaps: 1, Late: 3 * time.Millisecond, LateMax: 150 * time.Millisecond, CPU: 40 * time.Millisecond,
		},
	}
}

func TestEveryLineIsOpenMetrics(t *testing.T) {
	r := reading()
	r.Sockets, r.SocketsKnown = nil, false
	_, got := get(t, serve(t, r, true), Path)
	of := `{instance="backend-1",run="r1",role="backend"`
	want := strings.Join([]string{
		"# HELP connlab_kernel_counter A counter of the namespace's /proc/net/netstat or /proc/net/snmp, as the kernel spells it.",
		"# TYPE connlab_kernel_counter counter",
		"connlab_kernel_counter_total" + of + `,name="ListenOverflows",protocol="TcpExt"} 7.0`,
		"# HELP connlab_kernel_level A figure of the namespace's /proc/net/sockstat, sockstat6, netstat or snmp that goes up and down.",
		"# TYPE connlab_kernel_level gauge",
		"connlab_kernel_level" + of + `,name="CurrEstab",protocol="Tcp"} 4.0`,
		"connlab_kernel_level" + of + `,name="MaxConn",protocol="Tcp"} -1.0`,
		"connlab_kernel_level" + of + `,name="tw",protocol="TCP"} 9.0`,
		"connlab_kernel_level" + of + `,name="inuse",protocol="TCP6"} 2.0`,
		"# HELP connlab_accept_queue_depth Connections in the accept queue of a listening address and port; the sum of its listening sockets.",
		"# TYPE connlab_accept_queue_depth gauge",
		"connlab_accept_queue_depth" + of + `,address="0.0.0.0",port="8080"} 4.0`,
		"# HELP connlab_accept_queue_limit The backlog of that queue, as the kernel has it. The kernel takes one connection more for each listening socket.",
		"# TYPE connlab_accept_queue_limit gauge",
		"connlab_accept_queue_limit" + of + `,address="0.0.0.0",port="8080"} 4.0`,
		"# HELP connlab_listening_sockets Listening sockets of an address and port: more than one with SO_REUSEPORT.",
		"# TYPE connlab_listening_sockets gauge",
		"connlab_listening_sockets" + of + `,address="0.0.0.0",port="8080"} 2.0`,
		"# HELP connlab_listener_drops What the listening sockets of an address and port turned away since they were opened.",
		"# TYPE connlab_listener_drops counter",
		"connlab_listener_drops_total" + of + `,address="0.0.0.0",port="8080"} 11.0`,
		"# HELP connlab_process_cpu_seconds Processor time of the role's processes, in user and system mode, as seen once a second. What a process uses between the last look at it and its end is missing.",
		"# TYPE connlab_process_cpu_seconds counter",
		"# UNIT connlab_process_cpu_seconds seconds",
		"connlab_process_cpu_seconds_total" + of + `} 1.5`,
		"# HELP connlab_sampler_ticks Ticks that the sampler has taken.",
		"# TYPE connlab_sampler_ticks counter",
		"connlab_sampler_ticks_total" + of + `} 20.0`,
		"# HELP connlab_sampler_late_ticks Those of them that came later than half a period.",
		"# TYPE connlab_sampler_late_ticks counter",
		"connlab_sampler_late_ticks_total" + of + `} 2.0`,
		"# HELP connlab_sampler_missed_ticks Ticks that never came: their whole period had passed.",
		"# TYPE connlab_sampler_missed_ticks counter",
		"connlab_sampler_missed_ticks_total" + of + `} 1.0`,
		"# HELP connlab_sampler_cpu_seconds Processor time of the collector, without its capture.",
		"# TYPE connlab_sampler_cpu_seconds counter",
		"# UNIT connlab_sampler_cpu_seconds seconds",
		"connlab_sampler_cpu_seconds_total" + of + `} 0.04`,
		"# HELP connlab_sampler_lateness_seconds How late the last tick was.",
		"# TYPE connlab_sampler_lateness_seconds gauge",
		"# UNIT connlab_sampler_lateness_seconds seconds",
		"connlab_sampler_lateness_seconds" + of + `} 0.003`,
		"# HELP connlab_sampler_lateness_max_seconds How late a tick was at most, missed ones included.",
		"# TYPE connlab_sampler_lateness_max_seconds gauge",
		"# UNIT connlab_sampler_lateness_max_seconds seconds",
		"connlab_sampler_lateness_max_seconds" + of + `} 0.15`,
		"# HELP connlab_sampler_last_tick_timestamp_seconds When the last tick was: Unix time. All figures are of then.",
		"# TYPE connlab_sampler_last_tick_timestamp_seconds gauge",
		"# UNIT connlab_sampler_last_tick_timestamp_seconds seconds",
		"connlab_sampler_last_tick_timestamp_seconds" + of + `} 1.70000000025e+09`,
		"# EOF", "",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAParserOfPrometheusReadsEverySampleOnce(t *testing.T) {
	response, text := get(t, serve(t, reading(), true), Path)
	if got := response.Header.Get("Content-Type"); got != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Errorf("the content type is %q", got)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for name, family := range families {
		for _, metric := range family.Metric {
			key := fmt.Sprint(name, metric.Label)
			if seen[key] {
				t.Errorf("%s is there twice", key)
			}
			seen[key] = true
			found := map[string]string{}
			for _, pair := range metric.Label {
				found[pair.GetName()] = pair.GetValue()
			}
			for _, label := range labels {
				if found[label.Name] != label.Value {
					t.Errorf("%s has the labels %v", name, found)
				}
			}
		}
	}
	// Each state of either side, though only one has sockets.
	if got := len(families["connlab_sockets"].GetMetric()); got != 20 {
		t.Errorf("%d numbers of sockets, want 20", got)
	}
	if !strings.Contains(text, `side="server",state="ESTABLISHED"} 11.0`) || !strings.Contains(text, `side="client",state="TIME_WAIT"} 0.0`) {
		t.Errorf("got\n%s", text)
	}
}

func TestNothingIsServedBeforeTheFirstTick(t *testing.T) {
	if _, got := get(t, serve(t, latest.Reading{}, false), Path); got != "# EOF\n" {
		t.Errorf("got %q", got)
	}
}

func TestWhatWasNeverReadHasNoSample(t *testing.T) {
	_, text := get(t, serve(t, latest.Reading{Time: time.Unix(1, 0)}, true), Path)
	for _, name := range []string{"connlab_sockets", "connlab_process_cpu", "connlab_accept_queue", "connlab_kernel"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is served, and nobody has read it:\n%s", name, text)
		}
	}
}

func TestOtherRequestsAreRefused(t *testing.T) {
	address := serve(t, reading(), true)
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/", 404}, {http.MethodGet, "/metrics/", 404}, {http.MethodGet, "/debug/pprof/", 404},
		{http.MethodPost, "/metrics", 405}, {http.MethodHead, "/metrics", 405}, {http.MethodDelete, "/", 404},
	} {
		request, err := http.NewRequest(test.method, "http://"+address+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, response.StatusCode, test.want)
		}
	}
}

func TestAPortThatIsTakenIsRefusedAtOnce(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := netip.MustParseAddrPort(taken.Addr().String())
	want := fmt.Sprintf("metrics: listen tcp %s: bind: address already in use", address)
	if _, err := Listen(address, labels, nil); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// The whole answer comes at once, and the connection stays until its client closes it.
func TestTheClientClosesFirstAlsoWhereItAskedTheServerTo(t *testing.T) {
	conn, err := net.Dial("tcp", serve(t, reading(), true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || !bytes.HasSuffix(text, []byte("# EOF\n")) || response.ContentLength != int64(len(text)) {
		t.Errorf("%d bytes of %d: %v", len(text), response.ContentLength, err)
	}
	// A FIN of the server would end the stream; instead, after a while, its RST comes.
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("the server closed first: %d bytes, %v", n, err)
	}
}

func serve(t *testing.T, reading latest.Reading, known bool) string {
	t.Helper()
	server, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), labels, func() (latest.Reading, bool) { return reading, known })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if server.Connections() != 0 {
			t.Errorf("%d connections from outside, and all were from within", server.Connections())
		}
	})
	return fmt.Sprintf("127.0.0.1:%d", server.Port())
}

func get(t *testing.T, address, path string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func BenchmarkScrape(b *testing.B) {
	r := reading()
	for i := range 450 {
		r.Counters = append(r.Counters, procnet.Counter{Name: fmt.Sprintf("TcpExt.Counter%d", i), Value: int64(i) * 1000})
	}
	s := &Server{labels: labels, reading: func() (latest.Reading, bool) { return r, true }}
	for b.Loop() {
		if _, err := s.text(); err != nil {
			b.Fatal(err)
		}
	}
}
