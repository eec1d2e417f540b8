package schematest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"llmparity/internal/check"
)

// path returns the path of a published schema.
func path(t testing.TB, name string) string {
	t.Helper()
	root, err := Root()
	check.Err(t, err)
	return filepath.Join(root, "docs", "reference", "schemas", name+".schema.json")
}

// Published fails if the published schema is not that of v's type. how is the command that updates it; with update it
// is written.
func Published(t testing.TB, name string, v any, o Options, update bool, how string) {
	t.Helper()
	want, err := Of(v, o)
	check.Err(t, err)
	if _, err := compiled(want); err != nil {
		t.Fatalf("the generated schema %s is invalid: %v", name, err)
	}
	if update {
		check.Err(t, os.WriteFile(path(t, name), want, 0o644))
		return
	}
	got, err := os.ReadFile(path(t, name))
	if err != nil {
		t.Fatalf("%v (%s)", err, how)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/reference/schemas/%s.schema.json is not that of the Go types; update it with %s", name, how)
	}
}

// Valid fails if a document does not match a published schema.
func Valid(t testing.TB, name string, document []byte) {
	t.Helper()
	if err := Validator(t, name)(document); err != nil {
		t.Errorf("not a valid %s: %v", name, err)
	}
}

// Validator returns a function that returns why a document does not match a published schema.
func Validator(t testing.TB, name string) func(document []byte) error {
	t.Helper()
	text, err := os.ReadFile(path(t, name))
	check.Err(t, err)
	s, err := compiled(text)
	check.Err(t, err)
	return func(document []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return err
		}
		return s.Validate(doc)
	}
}

func compiled(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// RunFolder fails if JSON files of a run folder do not match the published schemas.
func RunFolder(t testing.TB, dir string) {
	t.Helper()
	for file, name := range map[string]string{"run.json": "run", "environment.json": "environment"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		check.Err(t, err)
		Valid(t, name, text)
	}
	text, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	check.Err(t, err)
	valid := Validator(t, "journal")
	for line := range bytes.Lines(text) {
		if err := valid(line); err != nil {
			t.Fatalf("journal.jsonl: %.200s: %v", line, err)
		}
	}
}
