package excerpt

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"connlab/collector/internal/packet"
)

// Connection is a chosen connection: all packets between two sockets within a
// span of time.
type Connection struct {
	ID              int64 // by which its packets name it
	Client, Server  netip.AddrPort
	FirstUs, LastUs int64 // both included, since the Unix epoch
}

// lineBytesMax bounds a line that names a connection; flows writes far shorter
// ones, with all of its columns.
const lineBytesMax = 1 << 20

// Chosen reads chosen connections, a line of JSON each, by the columns of a flow
// that Connection has. The first and the last line that flows --json writes are
// no connections and are skipped, as are all other columns.
func Chosen(r io.Reader) ([]Connection, error) {
	var chosen []Connection
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytesMax)
	number := 1
	for ; lines.Scan(); number++ {
		c, isFlow, err := connection(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if isFlow {
			chosen = append(chosen, c)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number, err)
	}
	return chosen, nil
}

// connection reads a line; false if it is not about a connection.
func connection(line []byte) (c Connection, isFlow bool, err error) {
	var row struct {
		Kind          string      `json:"kind"`
		ID            *int64      `json:"id"`
		ClientAddress *netip.Addr `json:"client_address"`
		ClientPort    *uint16     `json:"client_port"`
		ServerAddress *netip.Addr `json:"server_address"`
		ServerPort    *uint16     `json:"server_port"`
		FirstTimeUs   *int64      `json:"first_time_us"`
		LastTimeUs    *int64      `json:"last_time_us"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return c, false, err
	}
	if row.Kind == "header" || row.Kind == "end" {
		return c, false, nil
	}
	if row.ID == nil || row.ClientAddress == nil || row.ClientPort == nil || row.ServerAddress == nil ||
		row.ServerPort == nil || row.FirstTimeUs == nil || row.LastTimeUs == nil {
		return c, false, errors.New("it needs id, client_address, client_port, server_address, server_port, first_time_us and last_time_us")
	}
	if !row.ClientAddress.IsValid() || !row.ServerAddress.IsValid() {
		return c, false, errors.New("an address is empty")
	}
	return Connection{
		ID:      *row.ID,
		Client:  netip.AddrPortFrom(row.ClientAddress.WithZone(""), *row.ClientPort),
		Server:  netip.AddrPortFrom(row.ServerAddress.WithZone(""), *row.ServerPort),
		FirstUs: *row.FirstTimeUs,
		LastUs:  *row.LastTimeUs,
	}, true, nil
}

// sockets are the two ends of a segment.
type sockets struct {
	source, destination         packet.Address
	sourcePort, destinationPort uint16
}

func socketsOf(seg *packet.Segment) sockets {
	return sockets{seg.Source, seg.Destination, seg.SourcePort, seg.DestinationPort}
}

func between(from, to netip.AddrPort) sockets {
	return sockets{packet.AddressOf(from.Addr()), packet.AddressOf(to.Addr()), from.Port(), to.Port()}
}
