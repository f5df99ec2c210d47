package flow

import "connlab/collector/internal/tlsrecord"

// tlsHandshake is how far a connection's handshake of TLS has come, and when.
type tlsHandshake struct {
	clientHelloNs, serverHelloNs, clientReplyNs, endNs int64 // they hold from their step on

	step tlsStep
}

// tlsStep is what was seen last of a handshake of TLS.
type tlsStep uint8

const (
	tlsNone     tlsStep = iota
	tlsAsked            // the client's ClientHello
	tlsAnswered         // the server's ServerHello
	tlsReplied          // the client's keys in clear, which the server has yet to answer
	tlsFinished         // the client's reply, with which the handshake ended, unless the server asks once more
	tlsEnded
)

// follow takes a segment with new data. It sees only what record begins there: of a record that begins within a
// segment, and of what it encrypts, it knows nothing.
func (h *tlsHandshake) follow(from Side, a *arrival) {
	if h.step == tlsEnded {
		return
	}
	kind := tlsrecord.KindOf(a.Start)
	switch {
	case kind == tlsrecord.None:
	case from == Client:
		h.ofClient(kind, a.timeNs)
	default:
		h.ofServer(kind, a.timeNs)
	}
}

func (h *tlsHandshake) ofClient(kind tlsrecord.Kind, timeNs int64) {
	switch {
	case h.step == tlsNone && kind == tlsrecord.ClientHello:
		h.step, h.clientHelloNs = tlsAsked, timeNs
	case h.step != tlsAnswered || kind == tlsrecord.Alert || kind == tlsrecord.ClientHello:
		// It asks again as the server wishes, or leaves, or this is no part of a handshake.
	case kind == tlsrecord.ClientKeys:
		h.step, h.clientReplyNs = tlsReplied, timeNs
	default:
		h.step, h.clientReplyNs, h.endNs = tlsFinished, timeNs, timeNs
	}
}

func (h *tlsHandshake) ofServer(kind tlsrecord.Kind, timeNs int64) {
	switch {
	case kind == tlsrecord.ServerHello && h.step == tlsAsked:
		h.step, h.serverHelloNs = tlsAnswered, timeNs
	case kind == tlsrecord.ServerHello && h.step > tlsAnswered:
		// Its first one asked for another ClientHello, ahead of which a ChangeCipherSpec may have come.
		h.step, h.clientReplyNs, h.endNs = tlsAnswered, 0, 0
	case h.step < tlsReplied:
	case kind == tlsrecord.Alert:
		h.step, h.endNs = tlsReplied, 0 // it refuses the client's reply
	case h.step == tlsReplied:
		h.step, h.endNs = tlsEnded, timeNs
	default:
		h.step = tlsEnded
	}
}
