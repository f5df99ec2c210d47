package sampler

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"connlab/collector/internal/procfs"
	"connlab/collector/internal/sockdiag"
)

// The lines of samples.jsonl. Header and end come once and are plain structures; the others are written by append,
// many times a second, without reflection or garbage.

type header struct {
	Kind      string `json:"kind"`
	Schema    string `json:"schema"`
	Role      string `json:"role"`
	RateHz    int    `json:"rate_hz"`
	TimeUs    int64  `json:"time_us"`
	Kernel    string `json:"kernel"`
	Hz        int64  `json:"hz"`
	PageBytes int64  `json:"page_bytes"`
	CPUs      int    `json:"cpus"`
}

type end struct {
	Kind      string `json:"kind"`
	TimeUs    int64  `json:"time_us"`
	Reason    string `json:"reason"`
	Ticks     int64  `json:"ticks"`
	LateTicks int64  `json:"late_ticks"`
	Gaps      int64  `json:"gaps"`
	LateUsMax int64  `json:"late_us_max"`
	CPUms     int64  `json:"cpu_ms"`
}

func appendStructure(line []byte, structure any) ([]byte, error) {
	text, err := json.Marshal(structure)
	if err != nil {
		return line, err
	}
	return append(append(line, text...), '\n'), nil
}

// appendStart begins a line with its kind and the wall clock's time.
func appendStart(line []byte, kind string, now time.Time) []byte {
	line = append(line, `{"kind":"`...)
	line = append(line, kind...)
	return appendInt(line, `","time_us":`, now.UnixMicro())
}

// appendInt appends a key as it is given, with all its punctuation, and a number.
func appendInt(line []byte, key string, value int64) []byte {
	return strconv.AppendInt(append(line, key...), value, 10)
}

func appendHost(line []byte, host procfs.Host) []byte {
	line = appendInt(line, `,"host":{"cpu_total_ms":`, host.CPUTotalMS)
	line = appendInt(line, `,"cpu_idle_ms":`, host.CPUIdleMS)
	return append(line, '}')
}

func appendListeners(line []byte, listeners []sockdiag.Listener) []byte {
	for i, l := range listeners {
		line = appendComma(line, i)
		line = appendAddress(line, `{"address":`, l.Address)
		line = appendInt(line, `,"port":`, int64(l.Port))
		line = appendInt(line, `,"depth":`, int64(l.Depth))
		line = appendInt(line, `,"limit":`, int64(l.Limit))
		line = appendInt(line, `,"drops":`, int64(l.Drops))
		if isOneOfSeveral(listeners, i) {
			line = appendInt(line, `,"inode":`, int64(l.Inode))
		}
		line = append(line, '}')
	}
	return line
}

// appendUnixListeners appends the member of the unix sockets on which somebody waits; with all of them on a full line.
// Many a host has dozens that nobody waits on.
func appendUnixListeners(line []byte, listeners []sockdiag.UnixListener, full bool) []byte {
	count := 0
	for _, l := range listeners {
		if l.Depth == 0 && !full {
			continue
		}
		if count == 0 {
			line = append(line, `,"unix":[`...)
		}
		line = appendQuoted(append(appendComma(line, count), `{"path":`...), l.Path)
		line = appendInt(line, `,"depth":`, int64(l.Depth))
		line = append(appendInt(line, `,"limit":`, int64(l.Limit)), '}')
		count++
	}
	if count > 0 {
		line = append(line, ']')
	}
	return line
}

// isOneOfSeveral says whether another socket listens on the same address and port (SO_REUSEPORT).
func isOneOfSeveral(listeners []sockdiag.Listener, at int) bool {
	for i, l := range listeners {
		if i != at && l.Port == listeners[at].Port && l.Address == listeners[at].Address {
			return true
		}
	}
	return false
}

// appendGroups appends groups of sockets; those in TIME_WAIT have no state in the file.
func appendGroups(line []byte, groups []sockdiag.Group, timeWait bool) []byte {
	for i, g := range groups {
		line = append(appendComma(line, i), '{')
		if !timeWait {
			line = append(line, `"state":"`...)
			line = append(line, g.State.String()...)
			line = append(line, `",`...)
		}
		line = append(line, `"side":"`...)
		line = append(line, g.Side.String()...)
		line = appendInt(line, `","port":`, int64(g.Port))
		line = appendAddress(line, `,"local":`, g.Local)
		line = appendAddress(line, `,"peer":`, g.Peer)
		line = appendInt(line, `,"count":`, int64(g.Count))
		line = append(line, '}')
	}
	return line
}

// unacceptedMax bounds the connections that one line names. A queue of the kernel's default, 4096, may hold more.
const unacceptedMax = 1000

// appendUnaccepted appends the members of the connections that wait in an accept queue.
func appendUnaccepted(line []byte, sockets []sockdiag.Socket) []byte {
	line = append(line, `,"unaccepted":[`...)
	for i, s := range sockets[:min(len(sockets), unacceptedMax)] {
		line = appendComma(line, i)
		line = appendAddress(line, `{"local":`, s.Local.Addr())
		line = appendInt(line, `,"port":`, int64(s.Local.Port()))
		line = appendAddress(line, `,"peer":`, s.Peer.Addr())
		line = append(appendInt(line, `,"peer_port":`, int64(s.Peer.Port())), '}')
	}
	return appendInt(line, `],"unaccepted_more":`, int64(max(len(sockets)-unacceptedMax, 0)))
}

func appendProcesses(line []byte, processes []procfs.Process) []byte {
	for i, p := range processes {
		line = appendComma(line, i)
		line = appendInt(line, `{"pid":`, int64(p.PID))
		line = appendQuoted(append(line, `,"comm":`...), p.Comm)
		line = appendInt(line, `,"cpu_ms":`, p.CPUms)
		line = appendInt(line, `,"rss_kb":`, p.RSSkB)
		line = appendInt(line, `,"threads":`, p.Threads)
		line = appendKnown(line, `,"open_files":`, p.OpenFiles)
		line = append(appendKnown(line, `,"open_files_limit":`, p.OpenFilesLimit), '}')
	}
	return line
}

// appendKnown appends a number, or null if it is -1.
func appendKnown(line []byte, key string, value int64) []byte {
	if value < 0 {
		return append(append(line, key...), "null"...)
	}
	return appendInt(line, key, value)
}

func appendComma(line []byte, i int) []byte {
	if i > 0 {
		line = append(line, ',')
	}
	return line
}

func appendAddress(line []byte, key string, address netip.Addr) []byte {
	line = append(append(line, key...), '"')
	return append(address.AppendTo(line), '"')
}

// appendQuoted appends a JSON string. A process may have any bytes as its name: those that are not UTF-8 become U+FFFD.
func appendQuoted(line []byte, text string) []byte {
	const digits = "0123456789abcdef"
	line = append(line, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			line = append(line, '\\', byte(r))
		case r < ' ':
			line = append(line, '\\', 'u', '0', '0', digits[r>>4], digits[r&0xf])
		default:
			line = utf8.AppendRune(line, r)
		}
	}
	return append(line, '"')
}
