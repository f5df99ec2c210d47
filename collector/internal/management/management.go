// Package management names the ports of the lab's own traffic. It goes over the loopback, which the capture does not
// see, and is left out of socket counts, so that the instruments do not measure themselves.
package management

// The ports on which every server role answers the collector (Actuator, stub_status), and k6's REST API.
const (
	ServerPort = 8081
	K6Port     = 6565
)

// IsPort says whether the lab's own traffic has this port.
func IsPort(port uint16) bool { return port == ServerPort || port == K6Port }
