// Package management names the ports of the lab's own traffic. It is left out of socket counts and of the capture,
// so that the instruments do not measure themselves.
package management

// The ports on which every server role answers the collector (Actuator, stub_status), and k6's REST API.
const (
	ServerPort = 8081
	K6Port     = 6565
)

// IsPort says whether a socket with this port belongs to the lab's own traffic.
func IsPort(port uint16) bool { return port == ServerPort || port == K6Port }
