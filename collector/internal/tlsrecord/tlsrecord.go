// Package tlsrecord reads what the first bytes of a segment show of TLS: the type of the record, and what is sent in clear.
package tlsrecord

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Content types of records.
const (
	changeCipherSpec = 20
	alert            = 21
	handshake        = 22
	applicationData  = 23
)

// Types of handshake messages, and of a ClientHello's extensions.
const (
	clientHello       = 1
	serverHello       = 2
	certificate       = 11
	clientKeyExchange = 16

	serverName = 0
	protocols  = 16
)

const (
	headBytes = 5
	alertLen  = 2
	// lengthMax is that of a record, encrypted.
	lengthMax = 1<<14 + 256
	namesMax  = 256 // bytes of what a ClientHello asks for
)

// messages are the handshake messages that are sent in clear in some version.
var messages = map[byte]string{
	0: "HelloRequest", clientHello: "ClientHello", serverHello: "ServerHello", 4: "NewSessionTicket", certificate: "Certificate",
	12: "ServerKeyExchange", 13: "CertificateRequest", 14: "ServerHelloDone", 15: "CertificateVerify",
	clientKeyExchange: "ClientKeyExchange", 22: "CertificateStatus",
}

// alerts are RFC 8446's and RFC 5246's.
var alerts = map[byte]string{
	0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow", 40: "handshake_failure",
	42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
	46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error",
	51: "decrypt_error", 70: "protocol_version", 71: "insufficient_security", 80: "internal_error",
	86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation", 109: "missing_extension",
	110: "unsupported_extension", 112: "unrecognized_name", 113: "bad_certificate_status_response",
	115: "unknown_psk_identity", 116: "certificate_required", 120: "no_application_protocol",
}

// Kept is how many of a segment's first bytes of data say what kind of record begins there: its head, and of a handshake
// the message's type, or of an alert in clear the alert. It is 0 for what is no TLS.
func Kept(data []byte) int {
	kind, length, ok := head(data)
	switch {
	case !ok:
		return 0
	case kind == handshake:
		return min(len(data), headBytes+1)
	case kind == alert && length == alertLen:
		return min(len(data), headBytes+alertLen)
	}
	return headBytes
}

// Describe says in words what record begins a segment's data; "" for what is no TLS.
func Describe(data []byte) string {
	kind, length, ok := head(data)
	if !ok {
		return ""
	}
	body := data[headBytes:]
	switch {
	case kind == changeCipherSpec:
		return "ChangeCipherSpec"
	case kind == applicationData:
		return "encrypted data"
	case kind == alert && length == alertLen && len(body) >= alertLen:
		name, known := alerts[body[1]]
		if !known {
			name = fmt.Sprint(body[1])
		}
		return "alert " + name
	case kind == alert:
		return "encrypted alert"
	case len(body) == 0:
		return "handshake"
	case body[0] == clientHello:
		return strings.Join(append([]string{"ClientHello"}, asked(body)...), " ")
	}
	if name, known := messages[body[0]]; known {
		return name
	}
	// After ChangeCipherSpec TLS 1.2 encrypts its last message.
	return "encrypted handshake"
}

// Kind is what a record is for a handshake.
type Kind uint8

// The kinds of records.
const (
	None        Kind = iota // no record begins there
	ClientHello             // the client asks for TLS
	ServerHello             // the server answers
	ClientKeys              // a side sends its part of the keys in clear, as until TLS 1.2
	Alert                   // an alert in clear
	Other                   // any other, most of them encrypted
)

// KindOf says what record begins a segment's data, of which packet.StartOf gives the start.
func KindOf(start uint64) Kind {
	if first := byte(start >> 40); first < changeCipherSpec || first > applicationData {
		return None // as most data that is no TLS
	}
	var data [8]byte
	binary.BigEndian.PutUint64(data[:], start<<16)
	kind, length, ok := head(data[:])
	switch message := data[headBytes]; {
	case !ok:
		return None
	case kind == alert && length == alertLen:
		return Alert
	case kind != handshake:
		return Other
	case message == clientHello:
		return ClientHello
	case message == serverHello:
		return ServerHello
	case message == certificate || message == clientKeyExchange:
		return ClientKeys
	}
	return Other
}

// head reads a record's head.
func head(data []byte) (kind byte, length uint16, ok bool) {
	if len(data) < headBytes || data[1] != 3 || data[2] > 4 {
		return 0, 0, false
	}
	kind, length = data[0], binary.BigEndian.Uint16(data[3:])
	return kind, length, kind >= changeCipherSpec && kind <= applicationData && length > 0 && length <= lengthMax
}

// A reader takes parts off; once something is missing, it has nothing more.
type reader []byte

func (r *reader) take(count int) reader {
	if count > len(*r) {
		*r = nil
		return nil
	}
	taken := (*r)[:count]
	*r = (*r)[count:]
	return taken
}

// sized takes what a length of so many bytes is followed by, or as much of that as there is.
func (r *reader) sized(bytes int) reader {
	length := 0
	for _, each := range r.take(bytes) {
		length = length<<8 | int(each)
	}
	return r.take(min(length, len(*r)))
}

// asked are the server's name and the protocols for which a ClientHello asks, as far as it is there.
func asked(message []byte) (found []string) {
	r := reader(message)
	r.take(1 + 3 + 2 + 32) // type, length, version, random
	r.sized(1)             // session
	r.sized(2)             // cipher suites
	r.sized(1)             // compression
	extensions := r.sized(2)
	for len(extensions) >= 4 {
		kind := extensions.take(2)
		body := extensions.sized(2)
		switch binary.BigEndian.Uint16(kind) {
		case serverName:
			list := body.sized(2)
			list.take(1)
			if name := list.sized(2); len(name) > 0 {
				found = append(found, "for "+printable(name))
			}
		case protocols:
			var names []string
			for list := body.sized(2); len(list) > 0; {
				names = append(names, printable(list.sized(1)))
			}
			if len(names) > 0 {
				found = append(found, "offers "+printable([]byte(strings.Join(names, ", "))))
			}
		}
	}
	return found
}

// printable bounds a text, and replaces what is not printable ASCII.
func printable(text []byte) string {
	if len(text) > namesMax {
		text = text[:namesMax]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(text))
}
