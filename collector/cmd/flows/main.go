// Command flows reduces packet captures to one record for each TCP connection.
//
// See docs/flows.md for the fields and their exact meaning.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowfile"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // the output could not be written
	exitUsage   = 2 // wrong arguments, or a file that is no capture; nothing is written
	exitPartial = 3 // a capture is cut or damaged; what was read before is written
)

const usage = `Usage: flows [--out flows.parquet] [--json] capture.pcap...

Reduces packet captures (pcap or pcapng; - is standard input) to one record for
each TCP connection. Several captures are read one after the other, as if they
were one: give rotated files in their order, captures of different places apart.

  --out FILE  the Parquet file to write; flows.parquet unless --json is given
  --json      write the records as JSON lines to standard output

Exit codes: 0 all was read; 1 the output cannot be written; 2 wrong usage or no
capture, nothing is written; 3 a capture is cut or damaged: what was read before
is written, and standard error says what was lost.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("flows", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	out := flags.String("out", "", "")
	asJSON := flags.Bool("json", false, "")
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
	}
	if *out == "" && !*asJSON {
		*out = "flows.parquet"
	}

	files, err := openAll(flags.Args())
	defer closeAll(files)
	if err == nil && *out != "" {
		err = refuseOverwriting(*out, flags.Args())
	}
	if err != nil {
		fmt.Fprintf(stderr, "flows: %v\n", err)
		return exitUsage
	}
	result, err := flow.Reduce(files)
	if err != nil {
		fmt.Fprintf(stderr, "flows: %v\n", err)
		return exitFailed
	}
	summary := &result.Summary
	if unsupported := summary.Kinds[packet.UnsupportedLink]; unsupported > 0 && unsupported == summary.Packets {
		fmt.Fprintf(stderr, "flows: %s: packets of link-layer type %d, which is not supported\n", flags.Arg(0), summary.UnknownLink)
		return exitUsage
	}
	if *out != "" {
		err = writeParquet(*out, result)
	}
	if err == nil && *asJSON {
		err = flowfile.WriteJSON(stdout, result)
	}
	if err != nil {
		fmt.Fprintf(stderr, "flows: %v\n", err)
		return exitFailed
	}
	return report(stderr, summary)
}

// openAll opens all captures before any is read, so that a wrong name costs no
// time.
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
		return nil // it does not exist; what else is wrong shows when it is written
	}
	for _, name := range captures {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, target) {
			return fmt.Errorf("--out %s would overwrite a capture", out)
		}
	}
	return nil
}

// writeParquet writes the file beside its place and then moves it there, so
// that a half-written one never stands under its name.
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

// report says what of the captures is not in the output, and returns the exit
// code.
func report(stderr io.Writer, s *flow.Summary) int {
	for _, skipped := range []struct {
		count uint64
		what  string
	}{
		{s.Kinds[packet.Fragment], "are fragments of IP packets"},
		{s.Kinds[packet.Cut], "have headers that the capture cut off"},
		{s.Kinds[packet.Malformed], "have headers that contradict themselves"},
		{s.Kinds[packet.UnsupportedLink], fmt.Sprintf("have a link-layer type that is not supported (%d)", s.UnknownLink)},
		{s.Untimed, "have no time"},
	} {
		if skipped.count > 0 {
			fmt.Fprintf(stderr, "flows: %d of %d packets %s and were skipped\n", skipped.count, s.Packets, skipped.what)
		}
	}
	for _, damage := range s.Damage {
		fmt.Fprintf(stderr, "flows: %v; what follows is lost, the %d packets before it were read\n", damage, damage.PacketsRead)
	}
	if len(s.Damage) > 0 {
		return exitPartial
	}
	return exitOK
}
