package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Set makes the links of this namespace, in place of none, and reports what then stands. Where the kernel lacks netem, and
// for links that must know connections, serve starts the process that holds the packets.
func Set(device, socket, way string, all []Settings, serve func() error) (Report, error) {
	if len(all) > linksMax {
		return Report{}, fmt.Errorf("%d links: a namespace has at most %d", len(all), linksMax)
	}
	if way == "" {
		way = Netem
		for _, s := range all {
			if s.isOfFlows() {
				way = NFQueue
			}
		}
		if way == Netem {
			err := setNetem(device, all)
			if err == nil {
				return Read(device, socket)
			}
			if !lacksNetem(err) {
				return Report{}, errors.Join(err, removeNetem(device))
			}
			_ = removeNetem(device) // it may be without the first part, too
			way = NFQueue
		}
	} else if way == Netem {
		if err := setNetem(device, all); err != nil {
			return Report{}, err
		}
	}
	if way == NFQueue {
		if err := serve(); err != nil {
			return Report{}, err
		}
	}
	return Read(device, socket)
}

// lacksNetem says whether tc failed because the kernel has no such qdisc, or filter.
func lacksNetem(err error) bool {
	for _, words := range []string{"qdisc kind is unknown", "No such file or directory", "Operation not supported"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// Read reports the links that stand: what the process that holds packets says, or else what tc does.
func Read(device, socket string) (Report, error) {
	connection, err := net.Dial("unix", socket)
	if err == nil {
		return converse(connection, nil)
	}
	states, err := readNetem(device)
	if err != nil || len(states) == 0 {
		return Report{Links: []State{}}, err
	}
	return Report{Way: Netem, Links: states}, nil
}

// Change gives links that a process holds other settings, all of them at once, and reports what then stands. What is on the
// way already leaves when it was to.
func Change(socket string, all []Settings) (Report, error) {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return Report{}, fmt.Errorf("no process holds the packets of the links: %w", err)
	}
	return converse(connection, all)
}

// converse asks the process that holds the packets how the links are, after it has given them new settings, if any.
func converse(connection net.Conn, all []Settings) (Report, error) {
	defer connection.Close()
	var report Report
	if all != nil {
		if err := json.NewEncoder(connection).Encode(all); err != nil {
			return report, err
		}
	}
	if half, ok := connection.(*net.UnixConn); ok {
		if err := half.CloseWrite(); err != nil {
			return report, err
		}
	}
	err := json.NewDecoder(connection).Decode(&report)
	return report, err
}

// Detach runs this program with other arguments, in the background and for as long as the namespace has processes, and
// returns once it has printed a line. What it prints instead of that, and afterwards, goes to the file.
func Detach(log string, arguments ...string) error {
	messages, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer messages.Close()
	command := exec.Command("/proc/self/exe", arguments...)
	command.Stderr = messages
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	if n, _ := output.Read(make([]byte, 1)); n == 1 {
		return command.Process.Release()
	}
	err = command.Wait()
	text, _ := os.ReadFile(log)
	return fmt.Errorf("the process that holds the packets ended (%w): %s", err, strings.TrimSpace(string(text)))
}
