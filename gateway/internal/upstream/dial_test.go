package upstream

import (
	"net"
	"testing"
	"time"
)

func TestADialBeginsBeforeItsTimeOut(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	socket, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	dial := &pending{start: asked}
	// As the dialer does when it has made the socket; its timeout runs by then.
	if err := dial.look(time.Second)("tcp4", "", socket); err != nil {
		t.Fatal(err)
	}
	dial.settle("")
	if !dial.start.Equal(asked) {
		t.Errorf("it began %v after it was asked for", dial.start.Sub(asked))
	}
}
