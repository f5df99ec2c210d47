// Command gopacketflows is the yardstick of the benchmark: the same reduction
// as that of flows, but with gopacket's reader and its fastest decoder, the
// DecodingLayerParser. It reads pcap files of Ethernet and writes the same file
// as flows, byte for byte.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"log"
	"net"
	"os"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowfile"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: gopacketflows CAPTURE FLOWS")
	}
	if err := reduce(os.Args[1], os.Args[2]); err != nil {
		log.Fatal("gopacketflows: ", err)
	}
}

func reduce(capture, out string) error {
	file, err := os.Open(capture)
	if err != nil {
		return err
	}
	defer file.Close()
	reader, err := pcapgo.NewReader(bufio.NewReaderSize(file, 1<<20))
	if err != nil {
		return err
	}
	result, err := flow.ReduceDecoded(newDecoder(reader).next)
	if err != nil {
		return err
	}
	to, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(flowfile.WriteParquet(to, result), to.Close())
}

// decoder decodes into layers that it uses again for each packet, as gopacket's
// documentation advises where speed counts.
type decoder struct {
	reader  *pcapgo.Reader
	parser  *gopacket.DecodingLayerParser
	ether   layers.Ethernet
	ipv4    layers.IPv4
	ipv6    layers.IPv6
	tcp     layers.TCP
	decoded []gopacket.LayerType
}

func newDecoder(reader *pcapgo.Reader) *decoder {
	d := &decoder{reader: reader}
	d.parser = gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &d.ether, &d.ipv4, &d.ipv6, &d.tcp)
	d.parser.IgnoreUnsupported = true
	return d
}

func (d *decoder) next(rec *pcapfile.Record, seg *packet.Segment) (packet.Kind, error) {
	data, info, err := d.reader.ZeroCopyReadPacketData()
	if err != nil {
		return 0, err
	}
	rec.TimeNs = info.Timestamp.UnixNano()
	rec.Data, rec.WireLen = data, uint32(info.Length)
	if err := d.parser.DecodeLayers(data, &d.decoded); err != nil {
		return packet.Malformed, nil
	}
	kind := packet.NotIP
	var length int
	for _, layer := range d.decoded {
		switch layer {
		case layers.LayerTypeIPv4:
			kind = packet.NotTCP
			seg.Source, seg.Destination = address(d.ipv4.SrcIP), address(d.ipv4.DstIP)
			length = int(d.ipv4.Length) - 4*int(d.ipv4.IHL)
		case layers.LayerTypeIPv6:
			kind = packet.NotTCP
			seg.Source, seg.Destination = address(d.ipv6.SrcIP), address(d.ipv6.DstIP)
			length = int(d.ipv6.Length)
		case layers.LayerTypeTCP:
			kind = packet.TCP
			seg.SourcePort, seg.DestinationPort = uint16(d.tcp.SrcPort), uint16(d.tcp.DstPort)
			seg.Seq, seg.Ack, seg.Window = d.tcp.Seq, d.tcp.Ack, d.tcp.Window
			seg.Flags = flags(&d.tcp)
			seg.Payload = uint32(length - 4*int(d.tcp.DataOffset))
			seg.Start = packet.StartOf(d.tcp.Payload)
		}
	}
	return kind, nil
}

func address(ip net.IP) packet.Address {
	if len(ip) == net.IPv4len {
		return packet.Address{Low: 0xffff<<32 | uint64(binary.BigEndian.Uint32(ip))}
	}
	return packet.Address{High: binary.BigEndian.Uint64(ip), Low: binary.BigEndian.Uint64(ip[8:])}
}

func flags(tcp *layers.TCP) (flags packet.Flags) {
	for _, f := range [...]struct {
		set bool
		is  packet.Flags
	}{{tcp.FIN, packet.FIN}, {tcp.SYN, packet.SYN}, {tcp.RST, packet.RST}, {tcp.PSH, packet.PSH}, {tcp.ACK, packet.ACK}} {
		if f.set {
			flags |= f.is
		}
	}
	return flags
}
