package main

import (
	"encoding/json"
	"flag"
	"io"

	"connlab/collector/internal/inspect"
)

func inspectCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("inspect", flag.ContinueOnError)
	var sysctls []string
	flags.Func("sysctl", "a network setting to read, such as net.core.somaxconn; may stand many times", func(name string) error {
		sysctls = append(sysctls, name)
		return nil
	})
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	namespace, err := inspect.Inspect("/proc/sys", sysctls)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(namespace)
}
