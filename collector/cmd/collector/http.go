package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"connlab/collector/internal/probe"
)

const httpTimeout = 10 * time.Second

// httpCommand prints the body of the answer, whatever its status, and fails from 400 on. Repeated requests go one after the
// other, each on a connection of its own, until one fails; the last answer is printed.
func httpCommand(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	method := flags.String("method", http.MethodGet, "the request's method")
	body := flags.String("body", "", "the request's body, sent as application/json")
	times := flags.Uint("times", 1, "how many requests")
	rest, err := parse(flags, arguments, "URL")
	if err != nil {
		return err
	}
	client := probe.NewClient(httpTimeout)
	var answer []byte
	for range *times {
		if answer, err = exchange(client, *method, rest[0], *body); err != nil {
			break
		}
	}
	_, unwritten := out.Write(answer)
	return errors.Join(err, unwritten)
}

// exchange gives the answer's body also where its status is an error. The request's connection ends with it.
func exchange(client *http.Client, method, url, body string) ([]byte, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	defer client.CloseIdleConnections()
	status, answer, err := probe.Do(client, request)
	if err == nil && status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s answered %d %s", method, url, status, http.StatusText(status))
	}
	return answer, err
}
