package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
)

// modules is where k6 gets a script's remote modules from: local files. A key that ends with a slash stands for all URLs
// that begin so, and is a folder.
type modules map[string]string

// serveModules has k6 read remote modules as the variable CONNLAB_MODULES says, and from nowhere else. VUs have a
// transport of their own.
func serveModules(text string) error {
	if text == "" {
		return nil
	}
	files := modules{}
	if err := json.Unmarshal([]byte(text), &files); err != nil {
		return fmt.Errorf("CONNLAB_MODULES must be a JSON object of URLs and files: %w", err)
	}
	http.DefaultTransport = files
	return nil
}

// RoundTrip implements http.RoundTripper. k6 asks twice: the first time with a query of its own.
func (m modules) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := *request.URL
	asked.RawQuery = strings.TrimSuffix(strings.TrimSuffix(asked.RawQuery, "_k6=1"), "&")
	file := m.file(asked.String())
	if file == "" {
		return nil, errors.New("load.modules has no file for it")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header),
		Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)), Request: request,
	}, nil
}

func (m modules) file(url string) string {
	if file, mapped := m[url]; mapped {
		return file
	}
	longest := ""
	for prefix := range m {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(url, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return ""
	}
	// The URL's path is cleaned, so that it stays below the folder.
	return path.Join(m[longest], path.Clean("/"+strings.TrimPrefix(url, longest)))
}
