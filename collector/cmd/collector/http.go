package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"connlab/collector/internal/probe"
)

const httpTimeout = 10 * time.Second

// httpCommand prints the body of the answer, whatever its status, and fails from 400 on.
func httpCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	method := flags.String("method", http.MethodGet, "the request's method")
	body := flags.String("body", "", "the request's body, sent as application/json")
	rest, err := parse(flags, arguments, "URL")
	if err != nil {
		return err
	}
	request, err := http.NewRequest(*method, rest[0], strings.NewReader(*body))
	if err != nil {
		return err
	}
	if *body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := probe.NewClient(httpTimeout)
	defer client.CloseIdleConnections()
	status, answer, err := probe.Do(client, request)
	if err != nil {
		return err
	}
	if _, err := out.Write(answer); err != nil {
		return err
	}
	if status >= http.StatusBadRequest {
		return fmt.Errorf("%s %s answered %d %s", *method, rest[0], status, http.StatusText(status))
	}
	return nil
}
