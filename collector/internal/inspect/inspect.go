// Package inspect reads back what a network namespace is really set to.
package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/sockdiag"
)

// A Listener is one listening TCP socket, management ports included.
type Listener struct {
	Address string `json:"address"`
	Port    uint16 `json:"port"`
	Depth   uint32 `json:"depth"`
	Limit   uint32 `json:"limit"`
	Drops   uint32 `json:"drops"`
}

// A Namespace is what "collector inspect" prints.
type Namespace struct {
	// Sysctls are the values asked for, with single spaces between figures; nil if this kernel has no such setting.
	Sysctls   map[string]*string `json:"sysctls"`
	Listeners []Listener         `json:"listeners"`
	// Addresses are those of all interfaces but the loopback.
	Addresses []string `json:"addresses"`
	Kernel    string   `json:"kernel"`
}

// Inspect reads the calling process's namespace. sysctlRoot is /proc/sys except in tests.
func Inspect(sysctlRoot string, sysctls []string) (Namespace, error) {
	namespace := Namespace{Sysctls: map[string]*string{}, Listeners: []Listener{}, Addresses: []string{}}
	for _, name := range sysctls {
		value, err := readSysctl(sysctlRoot, name)
		if err != nil {
			return Namespace{}, err
		}
		namespace.Sysctls[name] = value
	}
	if err := namespace.readListeners(); err != nil {
		return Namespace{}, err
	}
	if err := namespace.readAddresses(); err != nil {
		return Namespace{}, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Namespace{}, fmt.Errorf("uname: %w", err)
	}
	namespace.Kernel = unix.ByteSliceToString(name.Release[:])
	return namespace, nil
}

var sysctlName = regexp.MustCompile(`^net(\.[a-zA-Z0-9_-]+)+$`)

// readSysctl returns the setting's value; nil if this kernel, or this namespace, has no such setting.
func readSysctl(root, name string) (*string, error) {
	if !sysctlName.MatchString(name) {
		return nil, fmt.Errorf("%q: want the name of a network setting, such as net.ipv4.tcp_syn_retries", name)
	}
	text, err := os.ReadFile(filepath.Join(root, strings.ReplaceAll(name, ".", "/")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value := strings.Join(strings.Fields(string(text)), " ")
	return &value, nil
}

func (n *Namespace) readListeners() error {
	diag, err := sockdiag.Dial()
	if err != nil {
		return err
	}
	listeners, err := diag.Listeners(nil)
	if err := errors.Join(err, diag.Close()); err != nil {
		return err
	}
	for _, l := range listeners {
		n.Listeners = append(n.Listeners, Listener{
			Address: l.Address.String(), Port: l.Port, Depth: l.Depth, Limit: l.Limit, Drops: l.Drops,
		})
	}
	return nil
}

func (n *Namespace) readAddresses() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err != nil {
			return err
		}
		if !prefix.Addr().IsLoopback() && !prefix.Addr().IsLinkLocalUnicast() {
			n.Addresses = append(n.Addresses, prefix.Addr().String())
		}
	}
	return nil
}
