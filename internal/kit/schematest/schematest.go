package schematest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"llmparity/internal/kit/check"
)

// path returns the path of a published schema.
func path(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Root(t), "docs", "reference", "schemas", name+".schema.json")
}

// Published fails if the published schema is not that of v's type. how is the command that updates it; with update it
// is written.
func Published(t testing.TB, name string, v any, o Options, update bool, how string) {
	t.Helper()
	want := Of(t, v, o)
	compiled(t, want)
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
	s := compiled(t, check.Read(t, path(t, name)))
	return func(document []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return err
		}
		return s.Validate(doc)
	}
}

// compiled parses a schema.
func compiled(t testing.TB, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	check.Err(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	check.Err(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	check.Err(t, err)
	return s
}

// RunFolder fails if JSON files of a run folder do not match the published schemas.
func RunFolder(t testing.TB, dir string) {
	t.Helper()
	for file, name := range map[string]string{"run.json": "run", "environment.json": "environment"} {
		Valid(t, name, check.Read(t, filepath.Join(dir, file)))
	}
	valid := Validator(t, "journal")
	for line := range bytes.Lines(check.Read(t, filepath.Join(dir, "journal.jsonl"))) {
		if err := valid(line); err != nil {
			t.Fatalf("journal.jsonl: %.200s: %v", line, err)
		}
	}
}
