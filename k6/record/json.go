package record

import (
	"strconv"
	"time"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as encoding/json does.
func AppendString(line []byte, s string) []byte {
	line = append(line, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			line = append(line, s[start:i]...)
			switch c {
			case '"', '\\':
				line = append(line, '\\', c)
			case '\n':
				line = append(line, '\\', 'n')
			default:
				line = append(line, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			line = append(line, s[start:i]...)
			line = append(line, "\ufffd"...)
			start = i + size
		}
		i += size
	}
	line = append(line, s[start:]...)
	return append(line, '"')
}

// AppendStringOrNull appends null for an empty string: no field of the raw files can be meaningfully empty.
func AppendStringOrNull(line []byte, s string) []byte {
	if s == "" {
		return append(line, "null"...)
	}
	return AppendString(line, s)
}

// AppendTime appends t in microseconds since the Unix epoch.
func AppendTime(line []byte, t time.Time) []byte {
	return strconv.AppendInt(line, t.UnixMicro(), 10)
}

// AppendMicroseconds appends d in whole microseconds.
func AppendMicroseconds(line []byte, d time.Duration) []byte {
	return strconv.AppendInt(line, d.Microseconds(), 10)
}
