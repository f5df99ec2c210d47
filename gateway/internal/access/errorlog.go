package access

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"connlab/gateway/internal/journal"
)

// An ErrorLog is an error.log in nginx's form: "2025/11/21 07:26:40 [error] 7#7: *12 what happened", *12 being the
// number of the client's connection. It says why the gateway answered a request by itself.
type ErrorLog struct {
	file *journal.File
}

// NewErrorLog writes to a file.
func NewErrorLog(file *journal.File) *ErrorLog { return &ErrorLog{file} }

// Stages at which an upstream can fail, in nginx's words.
const (
	Connecting = "while connecting to upstream"
	Securing   = "while SSL handshaking to upstream"
	Reading    = "while reading response header from upstream"
)

// Upstream reports a server that failed a request.
func (l *ErrorLog) Upstream(connection int64, stage, server string, err error) {
	what := map[string]string{Connecting: "connect()", Securing: "TLS handshake", Reading: "recv()"}[stage]
	text := fmt.Sprintf("%s failed (%v)", what, err)
	var number syscall.Errno
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &number):
		text = fmt.Sprintf("%s failed (%d: %v)", what, int(number), number)
	case errors.As(err, &timeout) && timeout.Timeout():
		text = fmt.Sprintf("upstream timed out (%d: %v)", int(syscall.ETIMEDOUT), syscall.ETIMEDOUT)
	case stage == Securing:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		text = "upstream prematurely closed connection"
	}
	l.write(fmt.Sprintf("*%d %s %s, upstream: \"%s\"", connection, text, stage, server))
}

// Write takes the messages of net/http; it implements io.Writer.
func (l *ErrorLog) Write(text []byte) (int, error) {
	l.write(strings.TrimSpace(string(text)))
	return len(text), nil
}

func (l *ErrorLog) write(text string) {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, text)
	l.file.Append(func(lines []byte) []byte {
		lines = time.Now().UTC().AppendFormat(lines, "2006/01/02 15:04:05")
		return fmt.Appendf(lines, " [error] %d#%d: %s\n", os.Getpid(), os.Getpid(), text)
	})
}
