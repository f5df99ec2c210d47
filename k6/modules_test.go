package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestARemoteModuleIsAFile(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"index.js": "exact", "lib/deep.js": "below", "secret": "no"} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client := http.Client{Transport: modules{
		"https://example.org/x/index.js": filepath.Join(folder, "index.js"),
		"https://example.org/lib/":       filepath.Join(folder, "lib"),
		"https://example.org/":           filepath.Join(folder, "none"),
	}}
	for url, wanted := range map[string]string{
		"https://example.org/x/index.js?_k6=1": "exact",
		"https://example.org/lib/deep.js":      "below",
		"https://example.org/lib/../secret":    "",
		"https://example.org/gone.js":          "",
		"https://example.net/x/index.js":       "",
	} {
		response, err := client.Get(url)
		if err != nil {
			if wanted != "" {
				t.Errorf("%s: %v", url, err)
			}
			continue
		}
		content, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(content) != wanted {
			t.Errorf("%s is %q, not %q", url, content, wanted)
		}
	}
}
