// Package procnet reads the counters of a network namespace from /proc/net: netstat, snmp, sockstat and sockstat6, and
// those of connection tracking.
//
// Every counter that the kernel prints is kept under the kernel's own spelling, known or not: "TcpExt.ListenOverflows",
// "Tcp.ActiveOpens", "sockstat.TCP.tw". The formats are those of net/ipv4/proc.c and net/ipv6/proc.c in the kernel.
package procnet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Counter is one figure of the kernel. Its name is dotted: the file's section, then the kernel's own name.
type Counter struct {
	Name  string
	Value int64
}

// A Table holds the counters of one file in the kernel's order. Parsing the next reading into the same table allocates
// nothing as long as the kernel prints the same names; the parsers take bytes and not an io.Reader for that reason.
type Table struct {
	counters []Counter
	keys     []key
	// layout grows by one whenever the names have changed: the kernel adds some only once they count (IcmpMsg).
	layout int
}

type key struct{ section, name string }

// Counters are the figures of the last parse. The slice is the table's own and changes with the next one.
func (t *Table) Counters() []Counter { return t.counters }

// Layout is a number that changes whenever the set or the order of names has changed.
func (t *Table) Layout() int { return t.layout }

// set stores the i-th figure of a reading.
func (t *Table) set(i int, prefix string, section, name []byte, value int64) {
	if i < len(t.keys) && t.keys[i].section == string(section) && t.keys[i].name == string(name) {
		t.counters[i].Value = value
		return
	}
	t.truncate(i)
	k := key{section: string(section), name: string(name)}
	t.keys = append(t.keys, k)
	t.counters = append(t.counters, Counter{Name: prefix + k.section + "." + k.name, Value: value})
	t.layout++
}

// truncate forgets all figures from the i-th on.
func (t *Table) truncate(i int) {
	if i < len(t.keys) {
		t.keys, t.counters = t.keys[:i], t.counters[:i]
		t.layout++
	}
}

// ParsePairs parses /proc/net/netstat or /proc/net/snmp: pairs of lines, "TcpExt: NameA NameB" then "TcpExt: 1 2".
// On an error the table holds what was read so far.
func (t *Table) ParsePairs(text []byte) error {
	n := 0
	defer func() { t.truncate(n) }()
	for line := 1; len(text) > 0; line += 2 {
		var header, values []byte
		header, text = cutLine(text)
		values, text = cutLine(text)
		section, names, found := bytes.Cut(header, []byte(":"))
		valueSection, figures, valuesFound := bytes.Cut(values, []byte(":"))
		if !found || !valuesFound || len(section) == 0 || !bytes.Equal(section, valueSection) {
			return fmt.Errorf("line %d: not a pair of a header and its values", line)
		}
		for {
			var name, figure []byte
			name, names = nextField(names)
			figure, figures = nextField(figures)
			if len(name) == 0 && len(figure) == 0 {
				break
			}
			if len(name) == 0 || len(figure) == 0 {
				return fmt.Errorf("line %d: %s has not one value for each name", line, section)
			}
			value, err := parseInt(figure)
			if err != nil {
				return fmt.Errorf("line %d: %s.%s: %w", line+1, section, name, err)
			}
			t.set(n, "", section, name, value)
			n++
		}
	}
	return nil
}

// ParseSockstat parses /proc/net/sockstat or sockstat6: lines as "TCP: inuse 5 orphan 0 tw 0". The prefix, with its
// dot, distinguishes the two files. On an error the table holds what was read so far.
func (t *Table) ParseSockstat(text []byte, prefix string) error {
	n := 0
	defer func() { t.truncate(n) }()
	for line := 1; len(text) > 0; line++ {
		var row []byte
		row, text = cutLine(text)
		section, fields, found := bytes.Cut(row, []byte(":"))
		if !found || len(section) == 0 {
			return fmt.Errorf("line %d: no section", line)
		}
		for {
			var name, figure []byte
			name, fields = nextField(fields)
			if len(name) == 0 {
				break
			}
			figure, fields = nextField(fields)
			value, err := parseInt(figure)
			if err != nil {
				return fmt.Errorf("line %d: %s.%s: %w", line, section, name, err)
			}
			t.set(n, prefix, section, name, value)
			n++
		}
	}
	return nil
}

// The columns of /proc/net/stat/nf_conntrack that say of packets that connection tracking dropped, or could not follow.
var conntrackDrops = []string{"invalid", "insert_failed", "drop", "early_drop"}

// ParseConntrack parses /proc/net/stat/nf_conntrack: a line of names, then one of hexadecimal numbers for each
// processor. `entries` is the same on each: connections that are followed now; the others are summed up.
func (t *Table) ParseConntrack(text []byte) error {
	n := 0
	defer func() { t.truncate(n) }()
	names, rows := cutLine(text)
	for column := 0; ; column++ {
		var name []byte
		if name, names = nextField(names); len(name) == 0 {
			return nil
		}
		entries := string(name) == "entries"
		if !entries && !slices.Contains(conntrackDrops, string(name)) {
			continue
		}
		var sum int64
		for rest := rows; len(rest) > 0; {
			var row, figure []byte
			row, rest = cutLine(rest)
			for range column + 1 {
				figure, row = nextField(row)
			}
			value, err := parseHex(figure)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if entries {
				sum = value
			} else {
				sum += value
			}
		}
		if entries {
			t.set(n, "conntrack.", []byte("table"), name, sum)
		} else {
			t.set(n, "", []byte("conntrack"), name, sum)
		}
		n++
	}
}

// ParseConntrackMax parses nf_conntrack_max: how many connections are followed at most.
func (t *Table) ParseConntrackMax(text []byte) error {
	row, _ := cutLine(text)
	value, err := parseInt(row)
	if err != nil {
		t.truncate(0)
		return err
	}
	t.set(0, "conntrack.", []byte("table"), []byte("max"), value)
	return nil
}

// parseHex reads a hexadecimal integer of 32 bits.
func parseHex(text []byte) (int64, error) {
	if len(text) == 0 || len(text) > 8 {
		return 0, errNotInteger
	}
	var value int64
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			value = value<<4 | int64(c-'0')
		case c >= 'a' && c <= 'f':
			value = value<<4 | int64(c-'a'+10)
		default:
			return 0, errNotInteger
		}
	}
	return value, nil
}

// cutLine splits off the first line, without its end.
func cutLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return line, rest
}

// nextField splits off the first word; it is empty when none is left.
func nextField(text []byte) (field, rest []byte) {
	start := 0
	for start < len(text) && text[start] == ' ' {
		start++
	}
	end := start
	for end < len(text) && text[end] != ' ' {
		end++
	}
	return text[start:end], text[end:]
}

var errNotInteger = errors.New("not an integer of 64 bits")

// parseInt reads a decimal integer without the copy that strconv would need. Some figures are negative (Tcp.MaxConn).
func parseInt(text []byte) (int64, error) {
	digits, negative := text, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	if len(digits) == 0 {
		return 0, errNotInteger
	}
	var value int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, errNotInteger
		}
		digit := int64(c - '0')
		if value > (math.MaxInt64-digit)/10 {
			return 0, errNotInteger
		}
		value = value*10 + digit
	}
	if negative {
		value = -value
	}
	return value, nil
}
