// Command makepcap writes a synthetic capture of HTTP-like traffic, for the
// benchmark of the flow reducer.
package main

import (
	"bufio"
	"flag"
	"log"
	"math/rand/v2"
	"os"

	"connlab/collector/internal/flowtest"
)

func main() {
	log.SetFlags(0)
	packets := flag.Int("packets", 2_000_000, "packets to write")
	exchanges := flag.Int("exchanges", 10, "requests on each connection")
	snaplen := flag.Int("snaplen", 128, "bytes kept of each packet")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: makepcap [-packets N] [-exchanges N] [-snaplen N] FILE")
	}
	if err := write(flag.Arg(0), *packets, *exchanges, *snaplen); err != nil {
		log.Fatal("makepcap: ", err)
	}
}

func write(path string, packets, exchanges, snaplen int) error {
	// Three segments open a connection, four make an exchange, four close it.
	traffic := flowtest.Traffic{Connections: packets/(7+4*exchanges) + 1, Exchanges: exchanges, GapUs: 100}
	segments := traffic.Segments(rand.New(rand.NewPCG(1, 1)))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	header := flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, snaplen, nil)
	if _, err := buffered.Write(header); err != nil {
		return err
	}
	for i := range segments[:packets] {
		one := flowtest.Packets(flowtest.Ethernet, segments[i:i+1])
		record := flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, snaplen, one)[len(header):]
		if _, err := buffered.Write(record); err != nil {
			return err
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}
