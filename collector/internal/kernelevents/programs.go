// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The programs that this file writes call functions that the kernel keeps for programs under the GPL.

package kernelevents

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// What a program hands over for one event (decode.go reads it). It stands at the end of the program's stack; the room
// below it is for what a program reads on the way.
const (
	recordTime       = 0 // CLOCK_MONOTONIC, ns
	recordSocket     = 8 // the kernel's pointer; no file has it
	recordKind       = 16
	recordReason     = 20
	recordFamily     = 24
	recordLocalPort  = 26
	recordPeerPort   = 28
	recordFlags      = 30
	recordLocal      = 32
	recordPeer       = 48
	recordBy         = 64
	recordBytes      = 80
	scratchBytes     = 24
	record           = -recordBytes
	scratch          = record - scratchBytes
	addressBytes     = 16
	commandBytes     = 16
	protocolTCP      = unix.IPPROTO_TCP
	stateEstablished = 1
	stateSynSent     = 2
	stateSynReceived = 3
	stateClose       = 7
)

// The registers that a call leaves as they are.
const (
	socket   = asm.R6
	packet   = asm.R7
	ipHeader = asm.R8 // of the packet: IP, then TCP
	spare    = asm.R9
)

// An assembler writes one program.
type assembler struct {
	*layout
	code       asm.Instructions
	labels     int
	events     *ebpf.Map
	lost       *ebpf.Map
	namespace  uint32
	parameters int
}

func (a *assembler) emit(instructions ...asm.Instruction) { a.code = append(a.code, instructions...) }

func (a *assembler) label() string {
	a.labels++
	return fmt.Sprintf("label%d", a.labels)
}

// mark gives the place of the next instruction a name. The instruction itself does nothing.
func (a *assembler) mark(label string) {
	a.emit(asm.Mov.Reg(asm.R0, asm.R10).WithSymbol(label))
}

// read copies kernel memory to a place of the stack. What cannot be read becomes zero.
func (a *assembler) read(to int32, size int32, from asm.Register, offset int32) {
	a.emit(
		asm.Mov.Reg(asm.R3, from),
		asm.Add.Imm(asm.R3, offset),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R1, asm.R10),
		asm.Add.Imm(asm.R1, to),
		asm.FnProbeReadKernel.Call(),
	)
}

// pointer loads a pointer out of kernel memory into a register.
func (a *assembler) pointer(to asm.Register, from asm.Register, offset int32) {
	a.read(scratch, 8, from, offset)
	a.emit(asm.LoadMem(to, asm.R10, scratch, asm.DWord))
}

// number loads a number of kernel memory into R1.
func (a *assembler) number(size asm.Size, from asm.Register, offset int32) {
	a.read(scratch, int32(size.Sizeof()), from, offset)
	a.emit(asm.LoadMem(asm.R1, asm.R10, scratch, size))
}

// argument loads one of the tracepoint's arguments; R1 still has the context then.
func (a *assembler) argument(to asm.Register, index int) {
	a.emit(asm.LoadMem(to, asm.R1, int16(8*index), asm.DWord))
}

// begin clears the record and notes the kind. R1 has the context before and after it.
func (a *assembler) begin(kind kind) {
	a.emit(asm.Mov.Imm(asm.R0, 0))
	for place := int16(scratch); place < 0; place += 8 {
		a.emit(asm.StoreMem(asm.R10, place, asm.R0, asm.DWord))
	}
	a.emit(asm.StoreImm(asm.R10, record+recordKind, int64(kind), asm.Word))
}

// inNamespace goes to a label if the net that a register points to, at an offset, is the one that is recorded.
func (a *assembler) inNamespace(from asm.Register, offset int32, label string) {
	a.pointer(asm.R1, from, offset)
	a.number(asm.Word, asm.R1, a.at("net", "ns.inum"))
	a.emit(
		asm.Mov.Imm(asm.R2, int32(a.namespace)),
		asm.LSh.Imm(asm.R2, 32), asm.RSh.Imm(asm.R2, 32),
		asm.JEq.Reg(asm.R1, asm.R2, label),
	)
}

// ofSocket leaves the program unless the socket is one of this namespace.
func (a *assembler) ofSocket() {
	in := a.label()
	a.inNamespace(socket, a.at("sock_common", "skc_net.net"), in)
	a.emit(asm.Ja.Label("out"))
	a.mark(in)
}

// ofPacket leaves the program unless the packet is one of this namespace. Early, late and on its way out, a packet knows
// its namespace by different fields; one that does not apply has something else, which is no namespace.
func (a *assembler) ofPacket() {
	in, next := a.label(), a.label()
	a.emit(asm.JEq.Imm(socket, 0, next))
	a.inNamespace(socket, a.at("sock_common", "skc_net.net"), in)
	a.mark(next)
	a.pointer(spare, packet, a.at("sk_buff", "sk"))
	a.inNamespace(spare, a.at("sock_common", "skc_net.net"), in)
	a.pointer(spare, packet, a.at("sk_buff", "dev"))
	a.inNamespace(spare, a.at("net_device", "nd_net.net"), in)
	a.pointer(spare, packet, a.at("sk_buff", "_skb_refdst"))
	a.emit(asm.And.Imm(spare, ^1))
	a.pointer(spare, spare, a.at("dst_entry", "dev"))
	a.inNamespace(spare, a.at("net_device", "nd_net.net"), in)
	a.emit(asm.Ja.Label("out"))
	a.mark(in)
}

// socketTCP leaves the program unless the socket is one of TCP over IP.
func (a *assembler) socketTCP() {
	a.number(asm.Half, socket, a.at("sock", "sk_protocol"))
	a.emit(asm.JNE.Imm(asm.R1, protocolTCP, "out"))
	in := a.label()
	a.number(asm.Half, socket, a.at("sock_common", "skc_family"))
	a.emit(
		asm.JEq.Imm(asm.R1, unix.AF_INET, in),
		asm.JNE.Imm(asm.R1, unix.AF_INET6, "out"),
	)
	a.mark(in)
}

// ends notes both ends of a connection by its socket. A connection that is not one yet (request_sock) begins alike.
func (a *assembler) ends() {
	a.emit(asm.StoreMem(asm.R10, record+recordSocket, socket, asm.DWord))
	a.read(record+recordFamily, 2, socket, a.at("sock_common", "skc_family"))
	a.read(record+recordLocalPort, 2, socket, a.at("sock_common", "skc_num"))
	a.read(record+recordPeerPort, 2, socket, a.at("sock_common", "skc_dport"))
	a.number(asm.Half, socket, a.at("sock_common", "skc_family"))
	v6, done := a.label(), a.label()
	a.emit(asm.JEq.Imm(asm.R1, unix.AF_INET6, v6))
	a.read(record+recordLocal, 4, socket, a.at("sock_common", "skc_rcv_saddr"))
	a.read(record+recordPeer, 4, socket, a.at("sock_common", "skc_daddr"))
	a.emit(asm.Ja.Label(done))
	a.mark(v6)
	a.read(record+recordLocal, addressBytes, socket, a.at("sock_common", "skc_v6_rcv_saddr"))
	a.read(record+recordPeer, addressBytes, socket, a.at("sock_common", "skc_v6_daddr"))
	a.mark(done)
}

// sentPort notes the local port of a socket that has just given it up.
func (a *assembler) sentPort() {
	a.number(asm.Half, socket, a.at("inet_sock", "inet_sport"))
	a.emit(
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.R10, record+recordLocalPort, asm.R1, asm.Half),
	)
}

// headers notes a packet's source as the local end, its destination as the peer, and its flags. It leaves the program
// unless the packet is one of TCP with its header in one piece.
func (a *assembler) headers() {
	a.pointer(ipHeader, packet, a.at("sk_buff", "head"))
	a.number(asm.Half, packet, a.at("sk_buff", "network_header"))
	a.emit(asm.Add.Reg(ipHeader, asm.R1))
	a.number(asm.Byte, ipHeader, 0)
	v6, tcp := a.label(), a.label()
	a.emit(
		asm.Mov.Reg(spare, asm.R1),
		asm.RSh.Imm(asm.R1, 4),
		asm.JEq.Imm(asm.R1, 6, v6),
		asm.JNE.Imm(asm.R1, 4, "out"),
	)
	a.number(asm.Byte, ipHeader, 9)
	a.emit(
		asm.JNE.Imm(asm.R1, protocolTCP, "out"),
		asm.StoreImm(asm.R10, record+recordFamily, unix.AF_INET, asm.Half),
	)
	a.read(record+recordLocal, 4, ipHeader, 12)
	a.read(record+recordPeer, 4, ipHeader, 16)
	a.emit(
		asm.And.Imm(spare, 15),
		asm.LSh.Imm(spare, 2),
		asm.Add.Reg(ipHeader, spare),
		asm.Ja.Label(tcp),
	)
	a.mark(v6)
	a.number(asm.Byte, ipHeader, 6)
	a.emit(
		asm.JNE.Imm(asm.R1, protocolTCP, "out"),
		asm.StoreImm(asm.R10, record+recordFamily, unix.AF_INET6, asm.Half),
	)
	a.read(record+recordLocal, addressBytes, ipHeader, 8)
	a.read(record+recordPeer, addressBytes, ipHeader, 24)
	a.emit(asm.Add.Imm(ipHeader, 40))
	a.mark(tcp)
	a.number(asm.Half, ipHeader, 0)
	a.emit(
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.R10, record+recordLocalPort, asm.R1, asm.Half),
	)
	a.read(record+recordPeerPort, 2, ipHeader, 2)
	a.read(record+recordFlags, 1, ipHeader, 13)
}

// by notes the program that runs.
func (a *assembler) by() {
	a.emit(
		asm.Mov.Reg(asm.R1, asm.R10), asm.Add.Imm(asm.R1, record+recordBy),
		asm.Mov.Imm(asm.R2, commandBytes),
		asm.FnGetCurrentComm.Call(),
	)
}

// end hands the record over, counts it if there is no room, and ends the program.
func (a *assembler) end() asm.Instructions {
	a.emit(
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R10, record+recordTime, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, a.events.FD()),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, record),
		asm.Mov.Imm(asm.R3, recordBytes),
		asm.Mov.Imm(asm.R4, unix.BPF_RB_NO_WAKEUP),
		asm.FnRingbufOutput.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.StoreImm(asm.R10, scratch, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, a.lost.FD()),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, scratch),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	)
	return a.code
}

// A tracepoint is one place of the kernel's code, and the program that runs there.
type tracepoint struct {
	name  string
	write func(a *assembler)
}

var tracepoints = []tracepoint{
	{"inet_sock_set_state", stateChange},
	{"sys_exit", accepted},
	{"tcp_retransmit_skb", retransmitted},
	{"tcp_retransmit_synack", func(a *assembler) {
		a.begin(synackRetransmittedKind)
		a.argument(socket, 1) // the request, which begins as a socket does
		a.ofSocket()
		a.ends()
	}},
	{"tcp_send_reset", resetSent},
	{"tcp_receive_reset", func(a *assembler) {
		a.begin(resetReceivedKind)
		a.argument(socket, 0)
		a.ofSocket()
		a.ends()
	}},
	{"kfree_skb", dropped},
}

// stateChange sees a connection enter the accept queue, just after the kernel has put it there, and one that a client
// has given up or that was refused.
func stateChange(a *assembler) {
	a.begin(queuedKind)
	a.argument(socket, 0)
	a.argument(asm.R2, 1)
	a.argument(asm.R3, 2)
	ended, common := a.label(), a.label()
	a.emit(
		asm.JEq.Imm(asm.R2, stateSynSent, ended),
		asm.JNE.Imm(asm.R2, stateSynReceived, "out"),
		asm.JNE.Imm(asm.R3, stateEstablished, "out"),
		asm.Ja.Label(common),
	)
	a.mark(ended)
	a.emit(
		asm.JNE.Imm(asm.R3, stateClose, "out"),
		asm.StoreImm(asm.R10, record+recordKind, int64(connectEndedKind), asm.Word),
	)
	a.read(record+recordReason, 4, socket, a.at("sock", "sk_err"))
	a.mark(common)
	a.ofSocket()
	a.socketTCP()
	a.ends()
	a.sentPort()
}

// accepted sees what accept and accept4 return: the file, and through it the connection that has left the queue.
func accepted(a *assembler) {
	a.argument(socket, 0)
	a.argument(spare, 1)
	a.emit(asm.JSLT.Imm(spare, 0, "out"))
	in := a.label()
	a.number(asm.DWord, socket, a.at("pt_regs", systemCall))
	a.emit(
		asm.JEq.Imm(asm.R1, unix.SYS_ACCEPT4, in),
		asm.JNE.Imm(asm.R1, unix.SYS_ACCEPT, "out"),
	)
	a.mark(in)
	a.begin(acceptedKind)
	a.emit(asm.FnGetCurrentTask.Call(), asm.Mov.Reg(socket, asm.R0))
	a.pointer(socket, socket, a.at("task_struct", "files"))
	a.pointer(socket, socket, a.at("files_struct", "fdt"))
	a.pointer(socket, socket, a.at("fdtable", "fd"))
	a.emit(asm.LSh.Imm(spare, 3), asm.Add.Reg(socket, spare))
	a.pointer(socket, socket, 0)
	a.pointer(socket, socket, a.at("file", "private_data"))
	a.pointer(socket, socket, a.at("socket", "sk"))
	a.ofSocket()
	a.socketTCP()
	a.ends()
	a.sentPort()
	a.by()
}

func retransmitted(a *assembler) {
	a.begin(retransmittedKind)
	if a.parameters > 2 {
		// Newer kernels come here with the attempts that failed, too.
		a.argument(asm.R2, 2)
		a.emit(asm.LSh.Imm(asm.R2, 32), asm.JNE.Imm(asm.R2, 0, "out"))
	}
	a.argument(socket, 0)
	a.argument(packet, 1)
	a.ofSocket()
	a.ends()
	a.read(record+recordFlags, 1, packet, a.at("sk_buff", "cb")+a.at("tcp_skb_cb", "tcp_flags"))
}

// resetSent sees a RST as the answer to a packet, which may belong to no socket, or that a program or a timer wants.
func resetSent(a *assembler) {
	a.begin(resetSentKind)
	if a.parameters > 2 {
		a.argument(asm.R2, 2)
		a.emit(asm.StoreMem(asm.R10, record+recordReason, asm.R2, asm.Word))
	}
	a.argument(socket, 0)
	a.argument(packet, 1)
	answer, done := a.label(), a.label()
	a.emit(asm.JNE.Imm(packet, 0, answer))
	a.ofSocket()
	a.ends()
	a.sentPort()
	a.by()
	a.emit(asm.Ja.Label(done))
	a.mark(answer)
	a.emit(asm.StoreImm(asm.R10, record+recordKind, int64(resetAnsweredKind), asm.Word))
	a.ofPacket()
	a.headers()
	a.mark(done)
}

func dropped(a *assembler) {
	a.begin(droppedKind)
	a.argument(packet, 0)
	a.argument(asm.R2, 2)
	a.emit(asm.StoreMem(asm.R10, record+recordReason, asm.R2, asm.Word))
	a.emit(asm.Mov.Imm(socket, 0))
	if a.parameters > 3 {
		a.argument(socket, 3)
	}
	a.headers()
	a.ofPacket()
}
