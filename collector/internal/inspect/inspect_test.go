package inspect

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connlab/collector/internal/netns"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

func TestSysctlsAreReadWithSingleSpaces(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "net/ipv4")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "ip_local_port_range"), []byte("32768\t60999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Inspect(root, []string{"net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_recycle"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got.Sysctls)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"net.ipv4.ip_local_port_range":"32768 60999","net.ipv4.tcp_tw_recycle":null}`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestOnlyNamesOfNetworkSettingsAreTaken(t *testing.T) {
	for _, name := range []string{"", "net", "kernel.core_pattern", "net/ipv4/tcp_rmem", "net..ipv4", "net.ipv4.tcp_rmem\n"} {
		if _, err := Inspect(t.TempDir(), []string{name}); err == nil || !strings.Contains(err.Error(), "want the name of a network setting") {
			t.Errorf("%q gave %v", name, err)
		}
	}
}

func TestTheRealNamespaceIsTold(t *testing.T) {
	netns.Require(t)
	peer, err := netns.NewPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	listener, err := net.Listen("tcp4", "127.0.0.1:8081")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	got, err := Inspect("/proc/sys", []string{"net.ipv4.tcp_syn_retries"})
	if err != nil {
		t.Fatal(err)
	}
	if value := got.Sysctls["net.ipv4.tcp_syn_retries"]; value == nil || *value != "6" {
		t.Errorf("sysctls %v", got.Sysctls)
	}
	// The list has the management ports too: the lab reads back what it set up.
	if !slices.ContainsFunc(got.Listeners, func(l Listener) bool { return l.Address == "127.0.0.1" && l.Port == 8081 && l.Limit > 0 }) {
		t.Errorf("listeners %+v", got.Listeners)
	}
	if want := []string{netns.Address, netns.AddressIPv6}; !slices.Equal(got.Addresses, want) {
		t.Errorf("addresses %v, want %v", got.Addresses, want)
	}
	if got.Kernel == "" {
		t.Error("no kernel")
	}
}
