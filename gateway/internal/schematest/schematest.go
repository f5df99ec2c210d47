// Package schematest holds what the gateway writes in its tests to the schemas that its readers rely on.
package schematest

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validate reports an error unless the document, a line of JSON or a whole file, follows schemas/NAME.schema.json. The
// folder is CONNLAB_SCHEMAS if that is set, for a copy of the gateway apart from the repository.
func Validate(t *testing.T, name string, document []byte) {
	t.Helper()
	schema, err := compile(name)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, document)
	}
}

var compiled sync.Map // of *jsonschema.Schema by name

func compile(name string) (*jsonschema.Schema, error) {
	if schema, found := compiled.Load(name); found {
		return schema.(*jsonschema.Schema), nil
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(folder(), name+".schema.json"))
	if err == nil {
		compiled.Store(name, schema)
	}
	return schema, err
}

func folder() string {
	if folder := os.Getenv("CONNLAB_SCHEMAS"); folder != "" {
		return folder
	}
	return "../schemas" // the tests that use this stand in the module's own folder
}
