// Command k6 is k6 with the lab's extension k6/x/connlab and its output connlab.
package main

import (
	"fmt"
	"os"
	"sync/atomic"

	"go.k6.io/k6/cmd"
	k6modules "go.k6.io/k6/js/modules"
	"go.k6.io/k6/lib"
	k6output "go.k6.io/k6/output"

	"connlab/k6/dial"
	"connlab/k6/exchange"
	"connlab/k6/module"
	"connlab/k6/output"
	"connlab/k6/record"
)

func main() {
	if err := serveModules(os.Getenv("CONNLAB_MODULES")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	journal := new(record.Journal)
	dials := dial.NewLog(journal)
	// k6 reports the progress of its iterations only to its VUs.
	execution := new(atomic.Pointer[lib.ExecutionState])
	exchanges := exchange.Register(func() bool { return journal.Folder() != "" })
	k6modules.Register("k6/x/connlab", module.New(journal, dials, execution))
	k6output.RegisterExtension("connlab", output.NewConstructor(journal, dials, exchanges, execution, os.Exit))
	cmd.Execute()
}
