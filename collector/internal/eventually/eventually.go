// Package eventually gives tests a wait for what another goroutine or process is about to do.
package eventually

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// Patience is so long that only a hang takes longer, even on a busy machine.
const Patience = 5 * time.Minute

// Holds returns as soon as a condition does; what says it in words.
func Holds(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Written returns as soon as a file has this many bytes.
func Written(t *testing.T, path string, bytesMin int64) {
	t.Helper()
	Holds(t, path+" is written", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() >= bytesMin
	})
}

// Has returns as soon as a text stands in a file this often.
func Has(t *testing.T, path, text string, times int) {
	t.Helper()
	Holds(t, path+" has "+text, func() bool { return Count(path, text) >= times })
}

// Count is how often a text stands in a file now; a file that is not there has none.
func Count(path, text string) int {
	content, _ := os.ReadFile(path)
	return bytes.Count(content, []byte(text))
}
