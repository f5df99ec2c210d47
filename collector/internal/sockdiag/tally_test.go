package sockdiag

import (
	"net/netip"
	"slices"
	"testing"
)

func TestTallyGroupsBySideAndServerPort(t *testing.T) {
	const here, there = "172.18.0.2", "172.18.0.3"
	tally := NewTally(false, 0)
	tally.Listens([]Listener{{Port: 8080}})
	for _, s := range []Socket{
		socket(Established, here+":8080", there+":40000"),
		socket(Established, here+":8080", there+":40001"),
		socket(SynRecv, here+":8080", there+":40002"),
		socket(Established, here+":50000", there+":8080"),
		socket(TimeWait, here+":50001", there+":8080"),
		// Clients whose own port is one of the lab's elsewhere.
		socket(SynSent, here+":8081", there+":8080"),
		socket(SynRecv, here+":8080", there+":6565"),
		// The lab's own traffic, on either side.
		socket(Established, "127.0.0.1:8081", "127.0.0.1:50002"),
		socket(Established, "127.0.0.1:50002", "127.0.0.1:8081"),
		socket(Established, "127.0.0.1:6565", "127.0.0.1:50003"),
	} {
		tally.Add(s)
	}
	local, peer := netip.MustParseAddr(here), netip.MustParseAddr(there)
	want := []Group{
		{Established, Client, 8080, local, peer, 1},
		{Established, Server, 8080, local, peer, 2},
		{SynSent, Client, 8080, local, peer, 1},
		{SynRecv, Server, 8080, local, peer, 2},
		{TimeWait, Client, 8080, local, peer, 1},
	}
	if got := tally.TakeUnaccepted(); len(got) > 0 {
		t.Errorf("programs have all of these, and %v wait", got)
	}
	if got := tally.Take(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := tally.Take(); len(got) > 0 {
		t.Errorf("groups are left over: %v", got)
	}
}

func TestWhoIsConnectedToTheMetricsPortIsNotCounted(t *testing.T) {
	tally := NewTally(false, 9645)
	tally.Listens([]Listener{{Port: 8080}, {Port: 9645}})
	tally.Add(socket(Established, "172.18.0.2:9645", "172.18.0.1:40000"))
	tally.Add(socket(Established, "127.0.0.1:40000", "127.0.0.1:9645"))
	// On another host the port is any port.
	tally.Add(socket(Established, "172.18.0.2:8080", "172.18.0.3:9645"))
	if got := tally.Take(); len(got) != 1 || got[0].Port != 8080 {
		t.Errorf("got %v", got)
	}
}

func TestAServerThatHasEndedKeepsItsSide(t *testing.T) {
	tally := NewTally(false, 0)
	tally.Listens([]Listener{{Port: 8080}})
	tally.Listens(nil)
	tally.Add(socket(TimeWait, "172.18.0.2:8080", "172.18.0.3:40000"))
	if got := tally.Take(); len(got) != 1 || got[0].Side != Server || got[0].Port != 8080 {
		t.Errorf("got %v", got)
	}
}

func socket(state State, local, peer string) Socket {
	return Socket{State: state, Local: netip.MustParseAddrPort(local), Peer: netip.MustParseAddrPort(peer)}
}

func TestTallyListsWhatNoProgramHasAccepted(t *testing.T) {
	const here, there = "172.18.0.2", "172.18.0.3"
	tally := NewTally(false, 0)
	tally.Listens([]Listener{{Port: 8080}})
	want := []Socket{
		{CloseWait, netip.MustParseAddrPort(here + ":8080"), netip.MustParseAddrPort(there + ":40001"), true},
		{Established, netip.MustParseAddrPort(here + ":8080"), netip.MustParseAddrPort(there + ":40002"), true},
	}
	for range 2 {
		tally.Add(want[1])
		tally.Add(want[0])
		tally.Add(socket(Established, here+":8080", there+":40003"))
		for _, others := range []Socket{
			// Closed by its program, and a client's end.
			socket(FinWait1, here+":8080", there+":40004"),
			socket(Established, here+":50000", there+":8080"),
		} {
			others.Unowned = true
			tally.Add(others)
		}
		if got := tally.TakeUnaccepted(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
