package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// path returns the path of a published schema.
func path(t testing.TB, name string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "docs", "reference", "schemas", name+".schema.json")
}

// Published fails if the published schema is not that of v's type. how is the command that updates it; with update it
// is written.
func Published(t testing.TB, name string, v any, o Options, update bool, how string) {
	t.Helper()
	want, err := Of(v, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compiled(want); err != nil {
		t.Fatalf("the generated schema %s is invalid: %v", name, err)
	}
	if update {
		if err := os.WriteFile(path(t, name), want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path(t, name))
	if err != nil {
		t.Fatalf("%v (%s)", err, how)
	}
	if bytes.Equal(got, want) {
		return
	}
	for _, line := range differences(got, want) {
		t.Errorf("docs/reference/schemas/%s.schema.json: %s; update it with %s", name, line, how)
	}
}

// differences lists missing and different fields.
func differences(published, made []byte) []string {
	var a, b any
	if err := json.Unmarshal(published, &a); err != nil {
		return []string{err.Error()}
	}
	if err := json.Unmarshal(made, &b); err != nil {
		return []string{err.Error()}
	}
	out := differing("", a, b)
	if len(out) == 0 {
		return []string{"the fields are in another order than in the Go type"}
	}
	return out
}

func differing(at string, published, made any) []string {
	a, isA := published.(map[string]any)
	b, isB := made.(map[string]any)
	if !isA || !isB {
		x, _ := json.Marshal(published)
		y, _ := json.Marshal(made)
		if bytes.Equal(x, y) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %.120s, want %.120s", at, x, y)}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			out = append(out, fmt.Sprintf("%s/%s is missing", at, key))
			continue
		}
		out = append(out, differing(at+"/"+key, a[key], b[key])...)
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[key]; !ok {
			out = append(out, fmt.Sprintf("%s/%s is not in the Go type", at, key))
		}
	}
	return out
}

// Valid fails if a document does not match a published schema.
func Valid(t testing.TB, name string, document []byte) {
	t.Helper()
	if err := Validate(t, name, document); err != nil {
		t.Errorf("not a valid %s: %v", name, err)
	}
}

// Validate returns why a document does not match a published schema.
func Validate(t testing.TB, name string, document []byte) error {
	t.Helper()
	return Validator(t, name)(document)
}

// Validator is Validate for many documents.
func Validator(t testing.TB, name string) func(document []byte) error {
	t.Helper()
	s := published(t, name)
	return func(document []byte) error { return validate(s, document) }
}

func published(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := compiled(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(s *jsonschema.Schema, document []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return s.Validate(doc)
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
		if err != nil {
			t.Fatal(err)
		}
		Valid(t, name, text)
	}
	text, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	journal := published(t, "journal")
	for line := range bytes.Lines(text) {
		if err := validate(journal, line); err != nil {
			t.Fatalf("journal.jsonl: %.200s: %v", line, err)
		}
	}
}
