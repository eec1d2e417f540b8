package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// first is a folder that the first version wrote: no metrics, no edges, no predictions.
const first = "testdata/first"

func TestTheFirstVersionsFolderIsRead(t *testing.T) {
	r, err := record.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) > 0 || r.Status != record.OK || len(r.Cells) != 1 || len(r.Attempts) != 1 {
		t.Fatalf("%+v", r)
	}
	a := r.Attempts[0]
	if len(a.Samples) != 3 || len(a.Totals) != 3 || a.Samples[1].RSS != 40 || a.Totals[1].RSS != 40 || len(a.Phases) != 2 ||
		len(a.Requests) != 1 || len(a.Requests[0].Tokens) != 2 || len(a.Requests[0].Spans) != 1 || !a.Counted() {
		t.Errorf("%+v", a)
	}
}

// withSchema copies the folder, says that it is of another schema, and adds what that may have.
func withSchema(t *testing.T, schema string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	change := func(name string, f func(string) string) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f(string(text))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change("run.json", func(s string) string { return strings.Replace(s, record.Schema, schema, 1) })
	change("journal.jsonl", func(s string) string {
		lines := strings.SplitAfter(s, "\n")
		lines[0] += `{"t_ns":1,"weather":{"sky":"blue"}}` + "\n"
		lines[2] = strings.Replace(lines[2], `"role":`, `"colour":"red","role":`, 1) + `{"t_ns":1,"attempt":1,"weather":{}}` + "\n"
		return strings.Join(lines, "")
	})
	change("samples.csv", func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		for i, more := range []string{"colour", "red", "red", "blue"} {
			lines[i] += "," + more
		}
		return strings.Join(lines, "\n") + "\n"
	})
	return dir
}

func TestANewerMinorVersionIsReadWithAWarning(t *testing.T) {
	r, err := record.Open(withSchema(t, record.Schema+".3"))
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	if got := strings.Join(codes, " "); got != "newer-schema lines-left-out" {
		t.Errorf("warnings %q", got)
	}
	if !strings.Contains(r.Warnings[0].Text, record.Schema+".3") {
		t.Errorf("the warning does not name the schema: %s", r.Warnings[0].Text)
	}
	if a := r.Attempts[0]; len(a.Samples) != 3 || a.Sources[1].Role != "server" {
		t.Errorf("%+v", a)
	}
}

func TestOtherSchemasAreRefusedInOneLine(t *testing.T) {
	for schema, want := range map[string]string{
		"llmparity.run/2":    `run.json: schema "llmparity.run/2", this version reads "llmparity.run/1"; read it with llmparity 0.0.1, which wrote it, or a newer one`,
		"llmparity.run/2.1":  `schema "llmparity.run/2.1"`,
		"llmparity.run/0":    `schema "llmparity.run/0"`,
		"llmparity.run/1.x":  `schema "llmparity.run/1.x"`,
		"llmparity.result/1": `schema "llmparity.result/1"`,
		"":                   `schema ""`,
	} {
		_, err := record.Open(withSchema(t, schema))
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.BadRecord || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %s", schema, err, want)
		}
	}
	// What this version does not know is no kind of line in a folder of its own schema.
	if _, err := record.Open(withSchema(t, record.Schema)); err == nil || !strings.Contains(err.Error(), "journal.jsonl line 2") {
		t.Errorf("an unknown line: %v", err)
	}
}
