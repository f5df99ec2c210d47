package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"connlab/collector/internal/packet"
	"connlab/collector/internal/tlsrecord"
)

// headersMin is how much is kept of a packet without a recognisable TCP header: Ethernet, IPv4 and TCP at their
// shortest.
const headersMin = 54

// copyHeaders copies tcpdump's pcap file to path and cuts the data off each packet, so that nobody can read there what
// was sent. Of TLS it leaves the kind of the record, and an alert in clear. Whenever the input pauses, the file has everything that was read so far.
func copyHeaders(path string, input io.Reader) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	reader, writer := bufio.NewReaderSize(input, 1<<16), bufio.NewWriterSize(file, 1<<16)
	defer func() { err = errors.Join(err, writer.Flush()) }()
	header := make([]byte, fileHeaderBytes)
	if _, err := io.ReadFull(reader, header); err != nil {
		return atEnd(err)
	}
	linkType := binary.NativeEndian.Uint32(header[20:]) & 0x03ffffff
	if _, err := writer.Write(header); err != nil {
		return err
	}
	record := make([]byte, packetHeaderBytes+snapBytes)
	for {
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if _, err := io.ReadFull(reader, record[:packetHeaderBytes]); err != nil {
			return atEnd(err)
		}
		captured, wire := binary.NativeEndian.Uint32(record[8:]), binary.NativeEndian.Uint32(record[12:])
		if captured > snapBytes {
			return fmt.Errorf("tcpdump wrote a packet of %d bytes", captured)
		}
		data := record[packetHeaderBytes:][:captured]
		if _, err := io.ReadFull(reader, data); err != nil {
			return atEnd(err)
		}
		kept := headerBytes(linkType, data, wire)
		binary.NativeEndian.PutUint32(record[8:], kept)
		if _, err := writer.Write(record[:packetHeaderBytes+kept]); err != nil {
			return err
		}
	}
}

// headerBytes is how much of a packet is kept: its headers, and what begins a record of TLS.
func headerBytes(linkType uint32, data []byte, wire uint32) uint32 {
	var segment packet.Segment
	headers := uint32(headersMin)
	if packet.Decode(linkType, data, wire, &segment) == packet.TCP {
		headers = wire - min(wire, segment.Payload)
		if headers < uint32(len(data)) {
			headers += uint32(tlsrecord.Kept(data[headers:]))
		}
	}
	return min(uint32(len(data)), headers)
}

// atEnd ignores the end of the input, because tcpdump says how many packets there should have been.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
