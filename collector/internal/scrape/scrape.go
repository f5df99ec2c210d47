// Package scrape asks a role's own metrics once a second and keeps each answer as a line of JSON.
package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"connlab/collector/internal/journal"
	"connlab/collector/internal/probe"
)

const (
	period = time.Second
	// An answer that takes longer would delay the next request.
	timeout = 900 * time.Millisecond
)

// line is one answer, or why there is none.
type line struct {
	TimeUs int64           `json:"time_us"`
	Status int             `json:"status,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Run creates the file at path and scrapes address into it until the context is done, over one kept-alive connection.
// It returns an error only when the file cannot be written: a scrape that fails is a line of its own. It does not try
// to connect while no program accepts connections there, because the role has ended, is paused or restarts.
func Run(ctx context.Context, address, path string) error {
	file, err := journal.Create(path)
	if err != nil {
		return err
	}
	listening, err := probe.NewListening(address)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return errors.Join(scrape(ctx, address, listening, file), listening.Close(), file.Close())
}

func scrape(ctx context.Context, address string, listening *probe.Listening, file *journal.File) error {
	client := probe.NewClientWhile(listening, timeout)
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		text, err := ask(ctx, client, address)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			// A scrape that the end of the run cut off says nothing about the role.
			return nil
		}
		if err := file.Append(text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// ask scrapes once and returns the line about it.
func ask(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer := line{TimeUs: time.Now().UnixMicro()}
	status, body, err := probe.Do(client, request)
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.Status = status
		if answer.Body, err = asJSON(body); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(answer)
	return append(text, '\n'), err
}

// asJSON is the body itself if it is JSON (the encoder puts it on one line), else the body as a JSON string.
func asJSON(body []byte) (json.RawMessage, error) {
	if json.Valid(body) {
		return body, nil
	}
	return json.Marshal(string(body))
}
