// Command flows reduces packet captures to one record for each TCP connection,
// and prints the packets of chosen connections.
//
// See docs/flows.md for the fields and their exact meaning.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"connlab/collector/internal/excerpt"
	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowfile"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // the output could not be written
	exitUsage   = 2 // wrong arguments, or a file that is not a capture; nothing is written
	exitPartial = 3 // a capture is cut or damaged; what was read before is written
)

const usage = `Usage: flows [--out flows.parquet] [--json] capture.pcap...
       flows --packets chosen.jsonl capture.pcap...

Reduces packet captures (pcap or pcapng; - is standard input) to one record for
each TCP connection. Several captures are read one after the other, as if they
were one: give rotated files in their order, captures of different places apart.

  --out FILE      the Parquet file to write; flows.parquet unless --json is given
  --json          write the records as JSON lines to standard output
  --packets FILE  write the packets of chosen connections as JSON lines to
                  standard output, and no records. FILE (- is standard input)
                  names each connection by a line as --json writes it

Exit codes: 0 all was read; 1 the output cannot be written; 2 wrong usage or no
capture, nothing is written; 3 a capture is cut or damaged: what was read before
is written, and standard error says what was lost.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(arguments []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("flows", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	out := flags.String("out", "", "")
	asJSON := flags.Bool("json", false, "")
	packets := flags.String("packets", "", "")
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "flows: %v (flows --help says more)\n", err)
		return exitUsage
	case flags.NArg() == 0:
		fmt.Fprintln(stderr, "flows: no capture is named (flows --help says more)")
		return exitUsage
	case *packets != "" && (*out != "" || *asJSON):
		fmt.Fprintln(stderr, "flows: --packets goes with neither --out nor --json (flows --help says more)")
		return exitUsage
	case *packets == "-" && slices.Contains(flags.Args(), "-"):
		fmt.Fprintln(stderr, "flows: standard input cannot be both the chosen connections and a capture")
		return exitUsage
	}
	if *out == "" && !*asJSON && *packets == "" {
		*out = "flows.parquet"
	}

	files, err := openAll(flags.Args())
	defer closeAll(files)
	if err == nil && *out != "" {
		err = refuseOverwriting(*out, flags.Args())
	}
	var chosen []excerpt.Connection
	if err == nil && *packets != "" {
		chosen, err = readChosen(*packets, stdin)
	}
	if err != nil {
		fmt.Fprintf(stderr, "flows: %v\n", err)
		return exitUsage
	}
	var summary *flow.Summary
	var write func() error
	if *packets != "" {
		writer := flowfile.NewPacketWriter(stdout)
		summary, err = excerpt.Read(files, chosen, writer.Write)
		write = func() error { return writer.End(summary) }
	} else {
		var result *flow.Result
		if result, err = flow.Reduce(files); err == nil {
			summary = &result.Summary
		}
		write = func() error { return writeRecords(result, *out, *asJSON, stdout) }
	}
	if err != nil {
		fmt.Fprintf(stderr, "flows: %v\n", err)
		return exitFailed
	}
	if unsupported := summary.Kinds[packet.UnsupportedLink]; unsupported > 0 && unsupported == summary.Packets {
		fmt.Fprintf(stderr, "flows: %s: packets of link-layer type %d, which is not supported\n", flags.Arg(summary.UnknownLinkIn-1), summary.UnknownLink)
		return exitUsage
	}
	if err := write(); err != nil {
		fmt.Fprintf(stderr, "flows: %v\n", err)
		return exitFailed
	}
	return report(stderr, summary, flags.Args())
}

// writeRecords writes the records in the forms that are asked for.
func writeRecords(result *flow.Result, out string, asJSON bool, stdout io.Writer) error {
	// Everything but the connections is garbage as soon as it is written, and
	// the connections have no pointers. So frequent garbage collection costs
	// little.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	if out != "" {
		if err := writeParquet(out, result); err != nil {
			return err
		}
	}
	if asJSON {
		return flowfile.WriteJSON(stdout, result)
	}
	return nil
}

// readChosen reads the chosen connections.
func readChosen(name string, stdin io.Reader) ([]excerpt.Connection, error) {
	if name == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		stdin = file
	}
	chosen, err := excerpt.Chosen(stdin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return chosen, nil
}

// openAll opens all captures before the program reads any, so that a wrong name
// costs no time.
func openAll(names []string) ([]*pcapfile.File, error) {
	var files []*pcapfile.File
	for _, name := range names {
		f, err := pcapfile.Open(name)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*pcapfile.File) {
	for _, f := range files {
		_ = f.Close() // only read from
	}
}

// refuseOverwriting guards the captures: they cannot be made again.
func refuseOverwriting(out string, captures []string) error {
	target, err := os.Stat(out)
	if err != nil {
		return nil // it does not exist; any other fault shows when it is written
	}
	for _, name := range captures {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, target) {
			return fmt.Errorf("--out %s would overwrite a capture", out)
		}
	}
	return nil
}

// writeParquet writes a temporary file and then renames it, so that no
// half-written file ever has the name.
func writeParquet(out string, result *flow.Result) (err error) {
	part := out
	if info, err := os.Stat(out); err != nil || info.Mode().IsRegular() {
		part += ".part"
		defer os.Remove(part) // gone already, if all went well
	}
	file, err := os.Create(part)
	if err != nil {
		return err
	}
	err = errors.Join(flowfile.WriteParquet(file, result), file.Close())
	if err != nil || part == out {
		return err
	}
	return os.Rename(part, out)
}

// report says which parts of the captures are not in the output, and returns
// the exit code.
func report(stderr io.Writer, s *flow.Summary, names []string) int {
	unsupported := ""
	if s.UnknownLinkIn > 0 {
		unsupported = fmt.Sprintf("have a link-layer type that is not supported (%d, first in %s)", s.UnknownLink, names[s.UnknownLinkIn-1])
	}
	for _, skipped := range []struct {
		count uint64
		what  string
	}{
		{s.Kinds[packet.Fragment], "are fragments of IP packets"},
		{s.Kinds[packet.Cut], "have headers that the capture cut off"},
		{s.Kinds[packet.Malformed], "have headers that contradict themselves, or end inside them,"},
		{s.Kinds[packet.GRE], "are in GRE tunnels"},
		{s.Kinds[packet.VXLAN], "are in VXLAN tunnels"},
		{s.Kinds[packet.Geneve], "are in Geneve tunnels"},
		{s.Kinds[packet.GTP], "are in GTP tunnels"},
		{s.Kinds[packet.IPinIP], "are IP packets in IP packets"},
		{s.Kinds[packet.Pseudowire], "are in MPLS pseudowires"},
		{s.Kinds[packet.UnsupportedLink], unsupported},
		{s.Untimed, "have no time, or an impossible one,"},
	} {
		if skipped.count > 0 {
			fmt.Fprintf(stderr, "flows: %d of %d packets %s and were skipped\n", skipped.count, s.Packets, skipped.what)
		}
	}
	if s.BeyondFrame > 0 {
		fmt.Fprintf(stderr, "flows: %d of %d packets claim more bytes than their frames had, and were counted as they claim\n", s.BeyondFrame, s.Packets)
	}
	for _, damage := range s.Damage {
		fmt.Fprintf(stderr, "flows: %v; what follows is lost, the %d packets before it were read\n", damage, damage.PacketsRead)
	}
	if len(s.Damage) > 0 {
		return exitPartial
	}
	return exitOK
}
