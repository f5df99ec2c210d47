package sockdiag

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// A UnixListener is one listening socket of the file system, or of the kernel's own names, which begin with an @ here.
type UnixListener struct {
	Path string
	// Depth is the number of connections that wait to be accepted, Limit the backlog: the kernel takes one more than
	// that. A connect() beyond it is refused at once (EAGAIN), or waits if its socket may block; nothing is counted.
	Depth, Limit uint32
}

const (
	unixMessageType  = 20 // SOCK_DIAG_BY_FAMILY
	unixRequestBytes = 24 // struct unix_diag_req
	unixReplyBytes   = 16 // struct unix_diag_msg

	unixShowName, unixShowQueue           = 0x01, 0x10 // UDIAG_SHOW_NAME, UDIAG_SHOW_RQLEN
	attributeUnixName, attributeUnixQueue = 0, 4       // UNIX_DIAG_NAME, UNIX_DIAG_RQLEN
)

// UnixListeners appends all listening unix sockets of the namespace that have a name. A kernel that cannot tell of them
// has none.
func (c *Conn) UnixListeners(listeners []UnixListener) ([]UnixListener, error) {
	err := c.dump(unixRequest(), func(reply []byte) error {
		listener, err := decodeUnixListener(reply)
		if err == nil && listener.Path != "" {
			listeners = append(listeners, listener)
		}
		return err
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		return listeners, nil
	}
	return listeners, err
}

// unixRequest builds a netlink header and a struct unix_diag_req: family, protocol, padding, states, inode, what to
// show, cookie.
func unixRequest() []byte {
	b := make([]byte, headerBytes+unixRequestBytes)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unixMessageType)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[headerBytes] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[headerBytes+4:], uint32(Listeners))
	binary.NativeEndian.PutUint32(b[headerBytes+12:], unixShowName|unixShowQueue)
	return b
}

// decodeUnixListener reads a struct unix_diag_msg and its attributes: the name, and a struct unix_diag_rqlen, which has
// the accept queue of a listening socket and its backlog.
func decodeUnixListener(reply []byte) (listener UnixListener, err error) {
	if len(reply) < unixReplyBytes {
		return listener, fmt.Errorf("reply of %d bytes, want at least %d", len(reply), unixReplyBytes)
	}
	for attributes := reply[unixReplyBytes:]; len(attributes) > 0; {
		if len(attributes) < attributeHeaderBytes {
			return listener, fmt.Errorf("%d bytes are not an attribute", len(attributes))
		}
		kind := binary.NativeEndian.Uint16(attributes[2:])
		var attribute []byte
		attribute, attributes, err = cut(attributes, int(binary.NativeEndian.Uint16(attributes)), attributeHeaderBytes)
		if err != nil {
			return listener, err
		}
		value := attribute[attributeHeaderBytes:]
		switch {
		case kind == attributeUnixName:
			listener.Path = unixName(value)
		case kind == attributeUnixQueue && len(value) >= 8:
			listener.Depth = binary.NativeEndian.Uint32(value)
			listener.Limit = binary.NativeEndian.Uint32(value[4:])
		}
	}
	return listener, nil
}

// unixName is a socket's name as /proc/net/unix has it: a path ends at its zero byte, and one of the kernel's own names
// begins with one.
func unixName(name []byte) string {
	if len(name) > 0 && name[0] == 0 {
		return "@" + strings.ReplaceAll(string(name[1:]), "\x00", "@")
	}
	path, _, _ := bytes.Cut(name, []byte{0})
	return string(path)
}
