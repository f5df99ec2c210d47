// Package names is the name server of a role whose names may move: it answers for those by the address of the instance
// to which each leads, and passes all other questions on.
package names

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// Address is where the role's resolver asks: its container's resolv.conf names it.
	Address = "127.0.0.1:53"
	// ttlSeconds is short, as that of a name which is meant to move. A program that keeps an address for longer does so
	// by itself.
	ttlSeconds = 1
	sizeMax    = 64 << 10
	patience   = 5 * time.Second
)

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// A Table says to which instance each name leads.
type Table map[string]string

// Parse reads "api=backend-1 …".
func Parse(value string) (Table, error) {
	table := Table{}
	for _, entry := range strings.Fields(value) {
		name, instance, found := strings.Cut(entry, "=")
		if !found || !label.MatchString(name) || !label.MatchString(instance) {
			return nil, fmt.Errorf("%q: want name=instance, such as api=backend-1", entry)
		}
		table[name] = instance
	}
	return table, nil
}

// Load reads the table that the server answers by.
func Load(path string) (Table, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var table Table
	return table, json.Unmarshal(content, &table)
}

// Save changes what the server answers, from its next question on.
func (t Table) Save(path string) error {
	content, err := json.Marshal(t)
	if err != nil {
		return err
	}
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(part, content, 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// Names lists the table's names, sorted.
func (t Table) Names() []string { return slices.Sorted(maps.Keys(t)) }

// NameServer reads the first name server of a resolv.conf.
func NameServer(resolvConf string) (string, error) {
	content, err := os.ReadFile(resolvConf)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" {
			return net.JoinHostPort(fields[1], "53"), nil
		}
	}
	return "", fmt.Errorf("%s names no name server", resolvConf)
}

// A Server answers the role's questions.
type Server struct {
	socket net.PacketConn
	path   string
	passOn string
}

// Listen takes the address, and passes on what the table in the file does not have.
func Listen(address, path, passOn string) (*Server, error) {
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	return &Server{socket: socket, path: path, passOn: passOn}, nil
}

// Address is where the server listens.
func (s *Server) Address() string { return s.socket.LocalAddr().String() }

// Run answers until the context ends.
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.socket.Close() })()
	buffer := make([]byte, sizeMax)
	for {
		size, from, err := s.socket.ReadFrom(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("names: %w", err)
		}
		question := slices.Clone(buffer[:size])
		go func() {
			// A resolver that gets no answer asks again.
			if answer, err := s.answer(question); err == nil {
				_, _ = s.socket.WriteTo(answer, from)
			}
		}()
	}
}

// answer asks for the instance's address in place of a name that leads to it.
func (s *Server) answer(question []byte) ([]byte, error) {
	var asked dnsmessage.Message
	if err := asked.Unpack(question); err != nil {
		return nil, err
	}
	if len(asked.Questions) != 1 {
		return s.ask(question)
	}
	table, err := Load(s.path)
	if err != nil {
		return nil, err
	}
	name := asked.Questions[0].Name
	instance, found := table[strings.ToLower(strings.TrimSuffix(name.String(), "."))]
	if !found {
		return s.ask(question)
	}
	if asked.Questions[0].Name, err = dnsmessage.NewName(instance + "."); err != nil {
		return nil, err
	}
	packed, err := asked.Pack()
	if err != nil {
		return nil, err
	}
	told, err := s.ask(packed)
	if err != nil {
		return nil, err
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(told); err != nil {
		return nil, err
	}
	answer.Questions = []dnsmessage.Question{{Name: name, Type: asked.Questions[0].Type, Class: asked.Questions[0].Class}}
	for n := range answer.Answers {
		answer.Answers[n].Header.Name, answer.Answers[n].Header.TTL = name, ttlSeconds
	}
	return answer.Pack()
}

func (s *Server) ask(question []byte) ([]byte, error) {
	connection, err := net.Dial("udp", s.passOn)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := connection.Write(question); err != nil {
		return nil, err
	}
	buffer := make([]byte, sizeMax)
	size, err := connection.Read(buffer)
	return buffer[:size], err
}

// A Found name is one that a server was asked for.
type Found struct {
	Name      string   `json:"name"`
	Instance  string   `json:"instance"`
	Addresses []string `json:"addresses"`
}

// Ask asks a server for the IPv4 addresses of each name of the table.
func (t Table) Ask(ctx context.Context, server string) ([]Found, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server)
	}}
	all := []Found{}
	var errs []error
	for _, name := range t.Names() {
		addresses, err := resolver.LookupNetIP(ctx, "ip4", name+".")
		found := Found{Name: name, Instance: t[name], Addresses: []string{}}
		for _, each := range addresses {
			found.Addresses = append(found.Addresses, each.Unmap().String())
		}
		all, errs = append(all, found), append(errs, err)
	}
	return all, errors.Join(errs...)
}
