package flow

// listMax bounds the times listed of one connection's SYNs, and of its
// SYN-ACKs. No Linux client sends more: tcp_syn_retries is at most 127, and
// tcp_syn_linear_timeouts too.
const listMax = 256

// timeList is a list of times. In most connections it has one entry.
type timeList struct {
	firstNs    int64
	count      uint32
	head, tail uint32 // of the further times in timeArena, plus 1
}

// timeArena holds the further times of all lists. It has no pointers, so the
// garbage collector does not look into it.
type timeArena []timeNode

type timeNode struct {
	ns   int64
	next uint32 // plus 1
}

func (a *timeArena) add(list *timeList, ns int64) {
	list.count++
	switch {
	case list.count == 1:
		list.firstNs = ns
		return
	case list.count > listMax:
		return
	}
	*a = append(*a, timeNode{ns: ns})
	index := uint32(len(*a))
	if list.tail == 0 {
		list.head = index
	} else {
		(*a)[list.tail-1].next = index
	}
	list.tail = index
}

// appendTo appends the times of a list to dst.
func (a timeArena) appendTo(dst []int64, list *timeList) []int64 {
	if list.count == 0 {
		return dst
	}
	dst = append(dst, list.firstNs)
	for at := list.head; at != 0; at = a[at-1].next {
		dst = append(dst, a[at-1].ns)
	}
	return dst
}
