package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// The sizes of pcap's headers (pcap-savefile(5)).
const (
	fileHeaderBytes   = 24
	packetHeaderBytes = 16
)

// countPackets counts the complete packets in tcpdump's pcap file, up to the first incomplete one.
func countPackets(path string) (count int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // only read from
	reader := bufio.NewReaderSize(file, 1<<20)
	_, err = reader.Discard(fileHeaderBytes)
	for header := make([]byte, packetHeaderBytes); err == nil; count++ {
		if _, err = io.ReadFull(reader, header); err != nil {
			break
		}
		captured := binary.NativeEndian.Uint32(header[8:])
		if captured > snapBytes {
			return count, nil // these bytes are not a header
		}
		if _, err = reader.Discard(int(captured)); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return count, err
}
