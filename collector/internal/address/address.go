// Package address gives an interface of a network namespace further addresses (rtnetlink(7), linux/if_addr.h).
package address

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	headerBytes          = 16              // struct nlmsghdr
	messageBytes         = 8               // struct ifaddrmsg
	attributeHeaderBytes = 4               // struct nlattr
	replyBytes           = headerBytes + 4 // struct nlmsgerr without the request that it repeats
)

// Add gives the interface the address of the prefix, with the prefix's length. It needs NET_ADMIN. In an IPv4 subnet in
// which the interface has an address already, the new one is secondary: what the namespace itself sends still comes from
// the first. An IPv6 address can be used at once: nobody else on the lab's network can have it, so the kernel does not
// ask the others for a second (IFA_F_NODAD).
func Add(interfaceName string, prefix netip.Prefix) error {
	if err := add(interfaceName, prefix); err != nil {
		return fmt.Errorf("adding the address %s to %s: %w", prefix, interfaceName, err)
	}
	return nil
}

func add(interfaceName string, prefix netip.Prefix) (err error) {
	device, err := net.InterfaceByName(interfaceName)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Sendto(fd, request(uint32(device.Index), prefix), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	reply := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return err
	}
	return acknowledged(reply[:n])
}

func request(device uint32, prefix netip.Prefix) []byte {
	order := binary.NativeEndian
	address, family, flags := prefix.Addr().AsSlice(), byte(unix.AF_INET), byte(0)
	if prefix.Addr().Is6() {
		family, flags = unix.AF_INET6, unix.IFA_F_NODAD
	}
	length := headerBytes + messageBytes + 2*(attributeHeaderBytes+len(address))
	message := make([]byte, 0, length)
	message = order.AppendUint32(message, uint32(length))
	message = order.AppendUint16(message, unix.RTM_NEWADDR)
	message = order.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	message = order.AppendUint32(message, 1) // the sequence number
	message = order.AppendUint32(message, 0) // to the kernel
	message = append(message, family, byte(prefix.Bits()), flags, unix.RT_SCOPE_UNIVERSE)
	message = order.AppendUint32(message, device)
	for _, attribute := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		message = order.AppendUint16(message, uint16(attributeHeaderBytes+len(address)))
		message = order.AppendUint16(message, attribute)
		message = append(message, address...)
	}
	return message
}

// acknowledged returns the error in the kernel's answer; nil if the kernel did what was asked.
func acknowledged(reply []byte) error {
	order := binary.NativeEndian
	if len(reply) < replyBytes || order.Uint16(reply[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("the kernel answered %d bytes that are not an acknowledgement", len(reply))
	}
	if number := int32(order.Uint32(reply[headerBytes:])); number != 0 {
		return unix.Errno(-number)
	}
	return nil
}
