package excerpt

// windowBytesMax is the largest window of TCP (RFC 7323): a sequence number that
// is further from those in use is not a part of the connection.
const windowBytesMax = 1 << 30

// sequence numbers the bytes that one side sends: 0 is its SYN and 1 its first
// byte of data, as in Wireshark's relative numbers. They do not wrap around, so
// that two of them compare as plain numbers.
type sequence struct {
	known bool
	isn   uint32
	at    uint32 // the last sequence number in use
	place int64  // where that is
}

// of returns the place of a sequence number. Numbers before the first one that
// was seen have places below 1.
func (s *sequence) of(seq uint32, isSYN bool) int64 {
	switch {
	case isSYN && (!s.known || seq != s.isn):
		// A server that forgot a half-open connection begins anew.
		*s = sequence{known: true, isn: seq, at: seq}
	case isSYN:
		return 0
	case !s.known:
		*s = sequence{known: true, isn: seq - 1, at: seq, place: 1}
	}
	far := int64(int32(seq - s.at))
	place := s.place + far
	if -windowBytesMax <= far && far <= windowBytesMax {
		s.at, s.place = seq, place
	}
	return place
}
