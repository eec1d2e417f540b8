package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/docs/reference/schemas"
	"llmparity/internal/bench/bisect"
	"llmparity/internal/bench/doctor"
	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/reproduce"
	"llmparity/internal/history"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/predict/fit"
)

var update = flag.Bool("update", false, "write schemas and reference pages")

// A format with one text goes to standard output or a file, one with several files into a folder.
func TestFormatsWriteToTheRightPlace(t *testing.T) {
	lightTest(t)
	root := t.TempDir()
	a := comparetest.Write(t, root, "a", comparetest.Browser(2), comparetest.Native(2))
	b := comparetest.Write(t, root, "b", comparetest.Native(2))
	before, page := filesIn(t, a), readFile(t, "../../docs/reference/formats.md")
	begins := map[string]string{"json": "{\n", "markdown": "## ", "benchstat": "Unit ",
		"junit": "<?xml", "html": "<!doctype html>", "csv": "run,run_name,cell,",
		"bencher": "{\n", "llama-bench": "| model",
		"customSmallerIsBetter": "[\n", "customBiggerIsBetter": "[\n", "llama-bench-jsonl": `{"build_commit":`}
	for _, command := range [][]string{{"report", a}, {"compare", a, b}} {
		for _, f := range formats() {
			if !strings.Contains(page, "\n| `"+f.name+"` |") {
				t.Errorf("docs/reference/formats.md lacks %s: add it to scripts/reference/figures.go", f.name)
			}
			args, out := append(slices.Clone(command), "--format", f.name), ""
			if f.text != nil {
				if out = good(t, args...); !strings.HasPrefix(strings.TrimSpace(out),
					strings.TrimSpace(begins[f.name])) || f.name == "table" && !strings.Contains(out, "peak memory") {
					t.Errorf("%q: %.60q", args, out)
				}
			}
			path := filepath.Join(root, command[0], f.name)
			check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			if printed := good(t, append(args, "-o", path)...); printed != "" {
				t.Errorf("%q -o: %q", args, printed)
			}
			if f.file == nil {
				if readFile(t, path) != out {
					t.Errorf("%q: what -o wrote is not what is printed", args)
				}
				continue
			}
			var want []string
			for _, name := range []string{"metrics", "samples", "scores", "summary", "tokens", "totals"} {
				want = append(want, name+"."+f.name)
			}
			if got := filesIn(t, path); !slices.Equal(got, want) {
				t.Errorf("%q wrote %q, want %q", args, got, want)
			}
		}
	}
	if after := filesIn(t, a); !slices.Equal(before, after) {
		t.Errorf("the run's folder had %q and has %q", before, after)
	}
}

func called(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = execute(args, &o, &e)
	return o.String(), e.String(), code
}

// good returns the output of a command that succeeds.
func good(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, code := called(args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, %s", args, code, errs)
	}
	return out
}

// fails checks that a command ends with the exit code of a class and with one line that contains words.
func fails(t *testing.T, kind fault.Kind, words string, args ...string) {
	t.Helper()
	if _, errs, code := called(args...); code != kind.ExitCode() || !strings.Contains(errs, words) ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("%q: exit code %d, want %d and a line with %q: %s", args, code, kind.ExitCode(), words, errs)
	}
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Published schemas match what is printed.
func TestSchemas(t *testing.T) {
	lightTest(t)
	const how = "go test ./cmd/llmparity -run Schemas -update"
	schematest.Published(t, "doctor", doctor.Diagnosis{},
		schematest.Options{ID: doctor.Schema, Title: "what doctor --json prints",
			Const: map[string]string{"Diagnosis.schema": doctor.Schema}, Nullable: []string{"Diagnosis.libraries"}},
		*update, how)
	schematest.Published(t, "estimate", fit.Document{},
		schematest.Options{ID: "llmparity.estimate/2.0", Title: "what estimate --json prints",
			Const:    map[string]string{"Document.schema_version": "2.0", "Document.kind": "estimate"},
			Nullable: []string{"Risk.places"}}, *update, how)
	schematest.Published(t, "reproduce", reproduce.Reproduction{},
		schematest.Options{ID: reproduce.Schema, Title: "what reproduce --json prints",
			Const: map[string]string{"Reproduction.schema": reproduce.Schema}}, *update, how)
	schematest.Published(t, "bisect", bisect.Answer{},
		schematest.Options{ID: bisect.Schema, Title: "what bisect --json prints",
			Const: map[string]string{"Answer.schema": bisect.Schema}}, *update, how)
	schematest.Published(t, "history-check", history.Report{},
		schematest.Options{ID: history.ReportSchema, Title: "what history check --json prints",
			Const: map[string]string{"Report.schema": history.ReportSchema}}, *update, how)
	schematest.Published(t, "events", progress.Line{},
		schematest.Options{ID: progress.Schema, Title: "a line of what run --json prints",
			Const: map[string]string{"Line.schema": progress.Schema}}, *update, how)
	for _, name := range schemas.Names() {
		doc := decoded[map[string]any](t, good(t, "schema", name))
		if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("schema %s: %v", name, doc["$schema"])
		}
	}
	dir := comparetest.Write(t, t.TempDir(), "a", comparetest.Browser(2), comparetest.Native(2))
	for _, args := range [][]string{{dir, dir}, {dir, memoryLog},
		{dir, dir, "--by", "engine,model", "--allow-different"}} {
		schematest.Valid(t, "result", []byte(good(t, append([]string{"compare", "--json"}, args...)...)))
	}
}

// checkExports compares a run's files with their schemas, and its report with its CSV.
func checkExports(t *testing.T, dir string) {
	t.Helper()
	schematest.RunFolder(t, dir)
	schematest.Valid(t, "result", []byte(good(t, "report", dir, "--json")))
	profiles, err := filepath.Glob(filepath.Join(dir, "profile-*.json"))
	if err != nil || len(profiles) == 0 {
		t.Fatalf("no profile in %s (%v)", dir, err)
	}
	for _, path := range profiles {
		schematest.Valid(t, "profile", []byte(readFile(t, path)))
	}
	if good(t, "report", dir, "--format", "csv") != readFile(t, filepath.Join(dir, "summary.csv")) {
		t.Error("summary.csv of the run is not what the report gives")
	}
}
