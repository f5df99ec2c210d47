package record_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"connlab/k6/record"
)

func FuzzAppendStringIsReadBackAsItWas(f *testing.F) {
	for _, seed := range []string{"", "plain", `"\`, "\x00\n\r\t\x1f\x7f", "ä€😀", "\u2028\u2029", "\xff", "a\xc3", "\xed\xa0\x80b", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := record.AppendString([]byte("x"), text)
		if line[0] != 'x' || !utf8.Valid(line) || strings.ContainsAny(string(line), "\n\r") {
			t.Fatalf("%q became %q", text, line)
		}
		var read string
		if err := json.Unmarshal(line[1:], &read); err != nil {
			t.Fatalf("%q became %q: %v", text, line, err)
		}
		// As encoding/json does it: each byte that is not UTF-8 becomes one U+FFFD.
		if wanted := string([]rune(text)); read != wanted {
			t.Errorf("%q was read back as %q", wanted, read)
		}
	})
}

func TestAnEmptyStringIsNull(t *testing.T) {
	if line := string(record.AppendStringOrNull([]byte("x"), "")); line != "xnull" {
		t.Error(line)
	}
	if line := string(record.AppendStringOrNull([]byte("x"), "null")); line != `x"null"` {
		t.Error(line)
	}
}

func TestTimesAreWholeMicroseconds(t *testing.T) {
	at := time.Unix(1, 2_999).In(time.FixedZone("elsewhere", 3600))
	if line := string(record.AppendTime(nil, at)); line != "1000002" {
		t.Error(line)
	}
	if line := string(record.AppendMicroseconds(nil, 1_500_999*time.Nanosecond)); line != "1500" {
		t.Error(line)
	}
}
