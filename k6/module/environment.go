package module

import (
	"fmt"
	"regexp"
	"time"

	"connlab/k6/dial"
)

// defaultConnectTimeout is k6's own, for scripts that run without the lab's environment.
const defaultConnectTimeout = 30 * time.Second

var milliseconds = regexp.MustCompile(`^[1-9][0-9]{0,8}ms$`)

// connectionSettings reads what the environment says of connections.
func connectionSettings(lookup func(string) (string, bool)) (dial.Settings, error) {
	settings := dial.Settings{ConnectTimeout: defaultConnectTimeout}
	if text, set := lookup("CONNLAB_CONNECT_TIMEOUT"); set {
		if !milliseconds.MatchString(text) {
			return settings, fmt.Errorf("CONNLAB_CONNECT_TIMEOUT must be whole milliseconds such as 30000ms, not %q", text)
		}
		settings.ConnectTimeout, _ = time.ParseDuration(text)
	}
	switch text, _ := lookup("CONNLAB_TLS_RESUMPTION"); text {
	case "true":
		settings.TLSResumption = true
	case "", "false":
	default:
		return settings, fmt.Errorf("CONNLAB_TLS_RESUMPTION must be true or false, not %q", text)
	}
	return settings, nil
}
