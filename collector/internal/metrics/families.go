package metrics

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"connlab/collector/internal/latest"
	"connlab/collector/internal/sockdiag"
)

// A Label is a name and a value that every sample carries.
type Label struct{ Name, Value string }

// Taken says whether the families below already give their samples a label of this name.
func Taken(name string) bool {
	return slices.Contains([]string{"protocol", "name", "address", "port", "state", "side"}, name)
}

// levels are the figures of /proc/net/snmp and netstat that go up and down, or never move; all others only grow
// (RFC 1213, RFC 4022, and net/mptcp/mib.c in the kernel).
var levels = map[string]bool{
	"Ip.Forwarding": true, "Ip.DefaultTTL": true, "Tcp.RtoAlgorithm": true, "Tcp.RtoMin": true, "Tcp.RtoMax": true,
	"Tcp.MaxConn": true, "Tcp.CurrEstab": true, "MPTcpExt.MPCurrEstab": true,
}

const (
	seconds     = "seconds"
	noUnit      = ""
	totalSuffix = "_total"
)

// families returns all known figures as metric families, each with at least one sample. Names are OpenMetrics': a
// counter's ends with "_total", and the unit stands before that.
func families(reading latest.Reading, labels []Label) []*dto.MetricFamily {
	b := builder{labels: labels}
	b.kernel(reading)
	b.listeners(reading.Listeners)
	if reading.SocketsKnown {
		b.sockets(reading.Sockets)
	}
	if reading.CPUKnown {
		b.counter("connlab_process_cpu_seconds", seconds,
			"Processor time of the role's processes, in user and system mode, as seen once a second. What a process uses"+
				" between the last look at it and its end is missing.", reading.CPU.Seconds())
	}
	b.sampler(reading)
	return b.list
}

type builder struct {
	labels []Label
	list   []*dto.MetricFamily
}

func (b *builder) kernel(reading latest.Reading) {
	counters := b.family("connlab_kernel_counter", noUnit, dto.MetricType_COUNTER,
		"A counter of the namespace's /proc/net/netstat or /proc/net/snmp, as the kernel spells it.")
	values := b.family("connlab_kernel_level", noUnit, dto.MetricType_GAUGE,
		"A figure of the namespace's /proc/net/sockstat, sockstat6, netstat or snmp that goes up and down.")
	for _, c := range reading.Counters {
		of, isLevel := counters, levels[c.Name]
		name, isSockstat := strings.CutPrefix(c.Name, "sockstat.")
		if !isSockstat {
			name, isSockstat = strings.CutPrefix(c.Name, "sockstat6.")
		}
		if isLevel || isSockstat {
			of = values
		}
		protocol, name, _ := strings.Cut(name, ".")
		b.add(of, float64(c.Value), Label{"name", name}, Label{"protocol", protocol})
	}
	b.keep(counters, values)
}

// A queue is all accept queues of one address and port: with SO_REUSEPORT there are several.
type queue struct {
	address             netip.Addr
	port                uint16
	depth, limit, drops uint64
	sockets             int
}

func (b *builder) listeners(listeners []sockdiag.Listener) {
	depth := b.family("connlab_accept_queue_depth", noUnit, dto.MetricType_GAUGE,
		"Connections in the accept queue of a listening address and port; the sum of its listening sockets.")
	limit := b.family("connlab_accept_queue_limit", noUnit, dto.MetricType_GAUGE,
		"The backlog of that queue, as the kernel has it. The kernel takes one connection more for each listening socket.")
	sockets := b.family("connlab_listening_sockets", noUnit, dto.MetricType_GAUGE,
		"Listening sockets of an address and port: more than one with SO_REUSEPORT.")
	drops := b.family("connlab_listener_drops", noUnit, dto.MetricType_COUNTER,
		"What the listening sockets of an address and port turned away since they were opened.")
	for _, q := range queues(listeners) {
		at := []Label{{"address", q.address.String()}, {"port", strconv.Itoa(int(q.port))}}
		b.add(depth, float64(q.depth), at...)
		b.add(limit, float64(q.limit), at...)
		b.add(sockets, float64(q.sockets), at...)
		b.add(drops, float64(q.drops), at...)
	}
	b.keep(depth, limit, sockets, drops)
}

func queues(listeners []sockdiag.Listener) []queue {
	var list []queue
	for _, l := range listeners {
		i := slices.IndexFunc(list, func(q queue) bool { return q.address == l.Address && q.port == l.Port })
		if i < 0 {
			i = len(list)
			list = append(list, queue{address: l.Address, port: l.Port})
		}
		list[i].depth += uint64(l.Depth)
		list[i].limit += uint64(l.Limit)
		list[i].drops += uint64(l.Drops)
		list[i].sockets++
	}
	slices.SortFunc(list, func(a, b queue) int {
		return cmp.Or(cmp.Compare(a.port, b.port), a.address.Compare(b.address))
	})
	return list
}

// sockets returns every state of either side, also those without a socket, so that a line on a board does not end.
func (b *builder) sockets(counts map[latest.Kind]int) {
	sockets := b.family("connlab_sockets", noUnit, dto.MetricType_GAUGE,
		"TCP sockets by state, and by the end of the connection that the role has. Read once a second, TIME_WAIT every five.")
	for state := sockdiag.Established; state <= sockdiag.Closing; state++ {
		if state == sockdiag.Listen {
			continue
		}
		for _, side := range []sockdiag.Side{sockdiag.Client, sockdiag.Server} {
			count := counts[latest.Kind{State: state, Side: side}]
			b.add(sockets, float64(count), Label{"side", side.String()}, Label{"state", state.String()})
		}
	}
	b.keep(sockets)
}

func (b *builder) sampler(reading latest.Reading) {
	self := reading.Sampler
	b.counter("connlab_sampler_ticks", noUnit, "Ticks that the sampler has taken.", float64(self.Ticks))
	b.counter("connlab_sampler_late_ticks", noUnit, "Those of them that came later than half a period.", float64(self.LateTicks))
	b.counter("connlab_sampler_missed_ticks", noUnit, "Ticks that never came: their whole period had passed.", float64(self.Gaps))
	b.counter("connlab_sampler_cpu_seconds", seconds, "Processor time of the collector, without its capture.", self.CPU.Seconds())
	b.gauge("connlab_sampler_lateness_seconds", "How late the last tick was.", self.Late.Seconds())
	b.gauge("connlab_sampler_lateness_max_seconds", "How late a tick was at most, missed ones included.", self.LateMax.Seconds())
	b.gauge("connlab_sampler_last_tick_timestamp_seconds", "When the last tick was: Unix time. All figures are of then.",
		float64(reading.Time.UnixMicro())/float64(time.Second/time.Microsecond))
}

func (b *builder) counter(name, unit, help string, value float64) {
	family := b.family(name, unit, dto.MetricType_COUNTER, help)
	b.add(family, value)
	b.keep(family)
}

// gauge adds a gauge in seconds; gauges with other units have labels, and do not use this function.
func (b *builder) gauge(name, help string, value float64) {
	family := b.family(name, seconds, dto.MetricType_GAUGE, help)
	b.add(family, value)
	b.keep(family)
}

func (b *builder) family(name, unit string, kind dto.MetricType, help string) *dto.MetricFamily {
	if kind == dto.MetricType_COUNTER {
		name += totalSuffix
	}
	family := &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
	if unit != noUnit {
		family.Unit = &unit
	}
	return family
}

func (b *builder) add(family *dto.MetricFamily, value float64, labels ...Label) {
	metric := &dto.Metric{Label: make([]*dto.LabelPair, 0, len(b.labels)+len(labels))}
	for _, list := range [][]Label{b.labels, labels} {
		for i := range list {
			metric.Label = append(metric.Label, &dto.LabelPair{Name: &list[i].Name, Value: &list[i].Value})
		}
	}
	if family.GetType() == dto.MetricType_COUNTER {
		metric.Counter = &dto.Counter{Value: &value}
	} else {
		metric.Gauge = &dto.Gauge{Value: &value}
	}
	family.Metric = append(family.Metric, metric)
}

// keep appends the families that have samples.
func (b *builder) keep(list ...*dto.MetricFamily) {
	for _, family := range list {
		if len(family.Metric) > 0 {
			b.list = append(b.list, family)
		}
	}
}
