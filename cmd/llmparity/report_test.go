package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
)

// A record that somebody else made writes nothing outside its folder.
func TestProfilesStayInTheRunsFolder(t *testing.T) {
	root := t.TempDir()
	e := comparetest.Native(1)
	e.Cell.Engine = "exec:x/../../../out|\x00é"
	dir := comparetest.Write(t, root, "hostile", e)
	var out, errs strings.Builder
	if code := execute([]string{"report", dir, "--profile"}, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	want := filepath.Join(dir, "profile-2-exec-x-..-..-..-out---.json")
	if got, err := filepath.Glob(filepath.Join(dir, "profile-*")); err != nil || !slices.Equal(got, []string{want}) {
		t.Errorf("%q, %v; want %s", got, err, want)
	}
}

// What decides comes first and in short; --details has all that is known of memory.
func TestDetails(t *testing.T) {
	dir := predictedRun(t, t.TempDir(), "details", 0.53125)
	for _, command := range []string{"report", "compare"} {
		var short, long, errs strings.Builder
		if code := execute([]string{command, dir}, &short, &errs) +
			execute([]string{command, dir, "--details"}, &long, &errs); code != 0 {
			t.Fatal(code, errs.String())
		}
		for _, title := range []string{"\nPredictions and the run\n", "\nWhere the memory is\n"} {
			if strings.Contains(short.String(), title) || !strings.Contains(long.String(), title) {
				t.Errorf("%s: %q is not in the details alone", command, title)
			}
		}
		if !strings.Contains(short.String(), " foretold ") || !strings.Contains(short.String(), " error ") {
			t.Errorf("%s: no forecast in\n%s", command, short.String())
		}
	}
}

// Who names a file in a run's folder is told which folder to name.
func TestAFileOfARunsFolder(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "run", comparetest.Native(1))
	for _, c := range []struct{ command, file string }{{"report", "totals.csv"}, {"report", "samples.csv"},
		{"report", "run.json"}, {"compare", "totals.csv"}, {"compare", "tokens.csv"}} {
		var out, errs strings.Builder
		code := execute([]string{c.command, filepath.Join(dir, c.file)}, &out, &errs)
		if said := errs.String(); code != 2 || !strings.Contains(said, "is a file of a run's folder") ||
			!strings.HasSuffix(said, dir+"\n") || strings.Count(said, "\n") != 1 {
			t.Errorf("%s %s: exit code %d, %q", c.command, c.file, code, said)
		}
	}
}
