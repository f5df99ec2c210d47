// The collector runs beside a role of the lab: it holds the role's namespaces, samples what the kernel counts there,
// captures the packets, and answers questions about it. See collector/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// A command does its work and prints its result on out.
type command struct {
	name, arguments, does string
	run                   func(arguments []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"run", "", "sample and capture into /raw until SIGTERM or SIGINT; settings come from CONNLAB_… in the environment", run},
		{"healthy", "", "succeed once the collector beside samples and captures, and its role is ready", healthy},
		{"ready", "[--within 90s]", "wait until the role answers CONNLAB_READY_URL with 200; there may be none", ready},
		{"http", "[--method M] [--body B] [--times N] URL", "send one request, or N one after the other, and print the last answer's body; fail from status 400 on", httpCommand},
		{"tls", "[--oldest VERSION] ADDRESS:PORT", "make handshakes of TLS there, and print as JSON which versions it takes, whether tickets, and whether HTTP/2", tlsCommand},
		{"hold", "[--for 1h]", "do nothing until SIGTERM or SIGINT, or until the time is over: then fail", hold},
		{"link", "[--set JSON]", "make the ways to peers longer, slower or lossy, and print how they stand as JSON; without settings only print", linkCommand},
		{"filter", "--port N [--answer none] [--remove]", "let nobody connect to a port here, or everybody again, and print as JSON whether the rule stands", filterCommand},
		{"names", "[--set NAME=INSTANCE]", "let a name lead to another instance, and print as JSON where each leads; the role's name server must run", namesCommand},
		{"ping", "[--count N] [--every 2ms] ADDRESS", "measure round trips and losses by ICMP echoes, and print them as JSON", pingCommand},
		{"inspect", "[--sysctl NAME]…", "print this network namespace's settings, listeners and addresses as JSON", inspectCommand},
		{"events", "", "print the kernel's tracepoints whose events can be recorded here; fail where there are none, and say why", eventsCommand},
	}
}

// errUsage marks a mistake of the user's, whose message is already printed.
var errUsage = errors.New("usage")

func main() {
	switch err := dispatch(os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "collector: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func dispatch(arguments []string, out io.Writer) error {
	if len(arguments) > 0 {
		for _, c := range commands() {
			if c.name == arguments[0] {
				return c.run(arguments[1:], out)
			}
		}
	}
	fmt.Fprintln(os.Stderr, "usage: collector COMMAND")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %s\n      %s\n", strings.TrimSpace(c.name+" "+c.arguments), c.does)
	}
	return errUsage
}

// parse reads a command's flags; it requires one further argument for each name.
func parse(flags *flag.FlagSet, arguments []string, names ...string) ([]string, error) {
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errUsage
	}
	if flags.NArg() != len(names) {
		fmt.Fprintf(flags.Output(), "usage: collector %s\n", strings.Join(append([]string{flags.Name(), "[flags]"}, names...), " "))
		flags.PrintDefaults()
		return nil, errUsage
	}
	return flags.Args(), nil
}
