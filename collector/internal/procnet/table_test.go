package procnet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParsePairsKeepsEveryCounterUnderTheKernelsName(t *testing.T) {
	for _, test := range []struct {
		name, file string
		counters   int
		want       []Counter
	}{
		{"of a real kernel", "testdata/linux-6.18/net/netstat", 229, []Counter{
			{"TcpExt.SyncookiesSent", 0}, {"TcpExt.ListenOverflows", 0}, {"IpExt.InOctets", 100}, {"MPTcpExt.MPCapableSYNRX", 0},
		}},
		{"of a real kernel, snmp", "testdata/linux-6.18/net/snmp", 82, []Counter{
			{"Tcp.MaxConn", -1}, {"Tcp.ActiveOpens", 1}, {"Tcp.AttemptFails", 1}, {"Ip.OutTransmits", 2},
		}},
		{"unknown names and sections", "testdata/unknown-counters/net/netstat", 5, []Counter{
			{"TcpExt.ListenOverflows", 500}, {"TcpExt.ListenDrops", 500}, {"TcpExt.QueueOfTomorrow", 18},
			{"FutureExt.Alpha", 9223372036854775807}, {"FutureExt.Beta-2", -3},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var table Table
			if err := table.ParsePairs(read(t, test.file)); err != nil {
				t.Fatal(err)
			}
			if got := len(table.Counters()); got != test.counters {
				t.Errorf("%d counters, want %d", got, test.counters)
			}
			for _, want := range test.want {
				if !slices.Contains(table.Counters(), want) {
					t.Errorf("%v is missing", want)
				}
			}
		})
	}
}

func TestParseSockstatPutsThePrefixBeforeTheSection(t *testing.T) {
	var table Table
	if err := table.ParseSockstat(read(t, "testdata/unknown-counters/net/sockstat"), "sockstat."); err != nil {
		t.Fatal(err)
	}
	want := []Counter{
		{"sockstat.sockets.used", 31}, {"sockstat.TCP.inuse", 1}, {"sockstat.TCP.orphan", 0}, {"sockstat.TCP.tw", 28000},
		{"sockstat.TCP.alloc", 1}, {"sockstat.TCP.mem", 232}, {"sockstat.TCP.spare", 4}, {"sockstat.QUIC.inuse", 2},
	}
	if !slices.Equal(table.Counters(), want) {
		t.Errorf("got %v, want %v", table.Counters(), want)
	}
}

func TestASectionThatAppearsLaterChangesTheLayout(t *testing.T) {
	const before = "Icmp: InMsgs\nIcmp: 0\nTcp: ActiveOpens\nTcp: 5\n"
	const after = "Icmp: InMsgs\nIcmp: 1\nIcmpMsg: InType3\nIcmpMsg: 1\nTcp: ActiveOpens\nTcp: 6\n"
	var table Table
	parse := func(text string) int {
		t.Helper()
		if err := table.ParsePairs([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return table.Layout()
	}
	first := parse(before)
	if parse(before) != first {
		t.Error("the same names changed the layout")
	}
	if parse(after) == first {
		t.Error("a new name did not change the layout")
	}
	want := []Counter{{"Icmp.InMsgs", 1}, {"IcmpMsg.InType3", 1}, {"Tcp.ActiveOpens", 6}}
	if !slices.Equal(table.Counters(), want) {
		t.Errorf("got %v, want %v", table.Counters(), want)
	}
	grown := table.Layout()
	if parse(before) == grown {
		t.Error("a name that went did not change the layout")
	}
}

func TestParsingAgainAllocatesNothing(t *testing.T) {
	netstat := read(t, "testdata/linux-6.18/net/netstat")
	sockstat := read(t, "testdata/linux-6.18/net/sockstat")
	var pairs, sockets Table
	allocations := testing.AllocsPerRun(10, func() {
		if err := pairs.ParsePairs(netstat); err != nil {
			t.Fatal(err)
		}
		if err := sockets.ParseSockstat(sockstat, "sockstat."); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func TestBrokenTextIsRefusedWithItsPlace(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no values", "TcpExt: A B\n", "line 1: not a pair"},
		{"values of another section", "TcpExt: A\nIpExt: 1\n", "line 1: not a pair"},
		{"no section", ": A\n: 1\n", "line 1: not a pair"},
		{"too few values", "A: X\nA: 1\nB: X Y\nB: 1\n", "line 3: B has not one value for each name"},
		{"too many values", "B: X\nB: 1 2\n", "line 1: B has not one value for each name"},
		{"a word for a number", "B: X\nB: many\n", "line 2: B.X: not an integer"},
		{"a number that is too great", "B: X\nB: 9223372036854775808\n", "line 2: B.X: not an integer"},
		{"a lone sign", "B: X\nB: -\n", "line 2: B.X: not an integer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var table Table
			if err := table.ParsePairs([]byte(test.text)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
	for _, test := range []struct{ name, text, want string }{
		{"no section", "used 31\n", "line 1: no section"},
		{"a name without a value", "TCP: inuse 1 tw\n", "line 1: TCP.tw: not an integer"},
	} {
		t.Run("sockstat with "+test.name, func(t *testing.T) {
			var table Table
			if err := table.ParseSockstat([]byte(test.text), ""); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzParsePairs(f *testing.F) {
	for _, file := range []string{"linux-6.18/net/netstat", "linux-6.18/net/snmp", "unknown-counters/net/netstat"} {
		f.Add(read(f, filepath.Join("testdata", file)))
	}
	f.Add([]byte("A: \nA: \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var fresh, used Table
		seed := []byte("TcpExt: A B C\nTcpExt: 1 2 3\n")
		if err := used.ParsePairs(seed); err != nil {
			t.Fatal(err)
		}
		compare(t, &fresh, &used, func(table *Table) error { return table.ParsePairs(text) })
	})
}

func FuzzParseSockstat(f *testing.F) {
	f.Add(read(f, "testdata/linux-6.18/net/sockstat"))
	f.Add(read(f, "testdata/unknown-counters/net/sockstat"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var fresh, used Table
		if err := used.ParseSockstat([]byte("TCP: inuse 1 tw 2\n"), "sockstat."); err != nil {
			t.Fatal(err)
		}
		compare(t, &fresh, &used, func(table *Table) error { return table.ParseSockstat(text, "sockstat.") })
	})
}

// compare checks that a table that held another reading before ends with the same values as a fresh one.
func compare(t *testing.T, fresh, used *Table, parse func(*Table) error) {
	t.Helper()
	freshErr, usedErr := parse(fresh), parse(used)
	if (freshErr == nil) != (usedErr == nil) {
		t.Errorf("fresh: %v; used: %v", freshErr, usedErr)
	}
	if !slices.Equal(fresh.Counters(), used.Counters()) {
		t.Errorf("fresh: %v; used: %v", fresh.Counters(), used.Counters())
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestConntrackIsSummedUpOverTheProcessors(t *testing.T) {
	text := "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error\n" +
		"00000010  00000000 00000002 00000000 00000001 00000000 00000000 00000000 00000000 00000000 0000000a 00000000 000001b0\n" +
		"00000010  00000000 00000000 00000000 000000ff 00000000 00000000 00000000 00000000 00000001 00000001 00000003 00000342\n"
	var table Table
	if err := table.ParseConntrack([]byte(text)); err != nil {
		t.Fatal(err)
	}
	want := []Counter{
		{"conntrack.table.entries", 16}, {"conntrack.invalid", 256}, {"conntrack.insert_failed", 1},
		{"conntrack.drop", 11}, {"conntrack.early_drop", 3},
	}
	if got := table.Counters(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, bad := range []string{"entries\nxyz\n", "entries drop\n00000001\n", "entries\n123456789\n"} {
		if err := table.ParseConntrack([]byte(bad)); err == nil {
			t.Errorf("%q has no error", bad)
		}
	}
}
