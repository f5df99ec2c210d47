// Package filter lets nobody connect to a port: a rule of the namespace's own packet filter drops each SYN, or answers it
// by ICMP.
package filter

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// targets are what iptables does with a SYN, by the answer that its sender gets.
var targets = map[string][]string{
	"none":             {"DROP"},
	"port-unreachable": {"REJECT", "--reject-with", "icmp-port-unreachable"},
	"host-prohibited":  {"REJECT", "--reject-with", "icmp-host-prohibited"},
}

// A Rule is about the SYNs to one port.
type Rule struct {
	port   uint16
	target []string
}

// NewRule gives the rule for a port and the answer that a client gets: none, port-unreachable or host-prohibited.
func NewRule(port int, answer string) (Rule, error) {
	target, known := targets[answer]
	if !known {
		return Rule{}, fmt.Errorf("answer %q: want %s", answer, strings.Join(slices.Sorted(maps.Keys(targets)), ", "))
	}
	if port < 1 || port > 1<<16-1 {
		return Rule{}, fmt.Errorf("port %d: want 1 to 65535", port)
	}
	return Rule{uint16(port), target}, nil
}

// Add puts the rule before all others.
func (r Rule) Add() error { return r.run("-I") }

// Remove takes it away again.
func (r Rule) Remove() error { return r.run("-D") }

// Stands says whether the kernel has it.
func (r Rule) Stands() (bool, error) {
	err := r.run("-C")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

func (r Rule) run(action string) error {
	arguments := []string{"-w", action, "INPUT", "-p", "tcp", "--dport", strconv.Itoa(int(r.port)), "--syn", "-j"}
	arguments = append(arguments, r.target...)
	if output, err := exec.Command("iptables", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("iptables %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
