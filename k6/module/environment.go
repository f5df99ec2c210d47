package module

import (
	"fmt"
	"regexp"
	"time"
)

// defaultConnectTimeout is k6's own, for scripts that run without the lab's environment.
const defaultConnectTimeout = 30 * time.Second

var milliseconds = regexp.MustCompile(`^[1-9][0-9]{0,8}ms$`)

func connectTimeout(lookup func(string) (string, bool)) (time.Duration, error) {
	text, set := lookup("CONNLAB_CONNECT_TIMEOUT")
	if !set {
		return defaultConnectTimeout, nil
	}
	if !milliseconds.MatchString(text) {
		return 0, fmt.Errorf("CONNLAB_CONNECT_TIMEOUT must be whole milliseconds such as 30000ms, not %q", text)
	}
	return time.ParseDuration(text)
}
