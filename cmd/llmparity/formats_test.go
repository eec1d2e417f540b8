package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/docs/reference/schemas"
	"llmparity/internal/doctor"
	"llmparity/internal/fit"
	"llmparity/internal/progress"
	"llmparity/internal/reproduce"
	"llmparity/internal/schematest"
)

var update = flag.Bool("update", false, "write schemas and reference pages")

// A format with one text goes to standard output or a file, one with several files into a folder.
func TestFormatsWriteToTheRightPlace(t *testing.T) {
	root := t.TempDir()
	a := comparetest.Write(t, root, "a", comparetest.Browser(2), comparetest.Native(2))
	b := comparetest.Write(t, root, "b", comparetest.Native(2))
	before := filesIn(t, a)
	begins := map[string]string{"json": "{\n", "markdown": "## ", "benchstat": "Unit ",
		"junit": "<?xml", "html": "<!doctype html>", "csv": "run,run_name,cell,"}
	for _, command := range [][]string{{"report", a}, {"compare", a, b}} {
		for _, f := range formats() {
			args := append(slices.Clone(command), "--format", f.name)
			if f.text != nil {
				out, errs, code := called(args...)
				if code != 0 || !strings.HasPrefix(strings.TrimSpace(out), strings.TrimSpace(begins[f.name])) ||
					f.name == "table" && !strings.Contains(out, "peak memory") {
					t.Errorf("%q: exit code %d, %s, %.60q", args, code, errs, out)
				}
				if f.file == nil {
					path := filepath.Join(root, "one."+f.name)
					if printed, errs, code := called(append(args, "-o", path)...); code != 0 || printed != "" {
						t.Errorf("%q -o: exit code %d, %s, %q", args, code, errs, printed)
					}
					if text, err := os.ReadFile(path); err != nil || string(text) != out {
						t.Errorf("%q: what -o wrote is not what is printed (%v)", args, err)
					}
				}
			}
			if f.file != nil {
				dir := filepath.Join(root, command[0], f.name)
				if printed, errs, code := called(append(args, "-o", dir)...); code != 0 || printed != "" {
					t.Errorf("%q -o: exit code %d, %s, %q", args, code, errs, printed)
				}
				var want []string
				for _, name := range []string{"metrics", "samples", "summary", "tokens", "totals"} {
					want = append(want, name+"."+f.name)
				}
				if got := filesIn(t, dir); !slices.Equal(got, want) {
					t.Errorf("%q wrote %q, want %q", args, got, want)
				}
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
func good(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := called(args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, %s", args, code, errs)
	}
	return out
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Published schemas match what is printed.
func TestSchemas(t *testing.T) {
	const how = "go test ./cmd/llmparity -run Schemas -update"
	schematest.Published(t, "doctor", doctor.Diagnosis{},
		schematest.Options{ID: doctor.Schema, Title: "what doctor --json prints",
			Const: map[string]string{"Diagnosis.schema": doctor.Schema}, Nullable: []string{"Diagnosis.libraries"}},
		*update,
		how)
	schematest.Published(t, "estimate", fit.Document{},
		schematest.Options{ID: "llmparity.estimate/2.0", Title: "what estimate --json prints",
			Const:    map[string]string{"Document.schema_version": "2.0", "Document.kind": "estimate"},
			Nullable: []string{"Risk.places"},
			Absent:   []string{"Document.fits"}}, *update, how)
	schematest.Published(t, "reproduce", reproduce.Reproduction{},
		schematest.Options{ID: reproduce.Schema, Title: "what reproduce --json prints",
			Const: map[string]string{"Reproduction.schema": reproduce.Schema}}, *update, how)
	schematest.Published(t, "events", progress.Line{},
		schematest.Options{ID: progress.Schema, Title: "a line of what run --json prints",
			Const: map[string]string{"Line.schema": progress.Schema}}, *update, how)
	for _, name := range schemas.Names() {
		out, errs, code := called("schema", name)
		var doc map[string]any
		if err := json.Unmarshal([]byte(out), &doc); code != 0 || err != nil ||
			doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("schema %s: exit code %d, %s, %v", name, code, errs, err)
		}
	}
	dir := comparetest.Write(t, t.TempDir(), "a", comparetest.Browser(2), comparetest.Native(2))
	rows := filepath.Join(t.TempDir(), "rows.csv")
	check(t, os.WriteFile(rows, []byte(
		"timestamp,label,pid,rss_mb,vms_mb\n2026-01-15T10:30:00.1,run1,12,512.34,2048.67\n2026-01-15T10:30:00.2,run1,12,515,2048.67\n"), 0o644))
	for _, args := range [][]string{{dir, dir}, {dir, rows}, {dir, dir, "--by", "engine,model", "--allow-different"}} {
		out := good(t, append([]string{"compare", "--json"}, args...)...)
		schematest.Valid(t, "result", []byte(out))
	}
}

// checkExports compares a run's files with their schemas, and its report with its CSV.
func checkExports(t *testing.T, dir string) {
	t.Helper()
	schematest.RunFolder(t, dir)
	result := good(t, "report", dir, "--json")
	schematest.Valid(t, "result", []byte(result))
	profiles, err := filepath.Glob(filepath.Join(dir, "profile-*.json"))
	if err != nil || len(profiles) == 0 {
		t.Fatalf("no profile in %s (%v)", dir, err)
	}
	for _, path := range profiles {
		text := readFile(t, path)
		schematest.Valid(t, "profile", []byte(text))
	}
	summary, errs, code := called("report", dir, "--format", "csv")
	if left, err := os.ReadFile(filepath.Join(dir, "summary.csv")); code != 0 || err != nil || string(left) != summary {
		t.Errorf("summary.csv of the run is not what the report gives: %s %v", errs, err)
	}
}
