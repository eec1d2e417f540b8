package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
)

// A hostile engine name must not write outside the run's folder.
func TestProfilesStayInRunFolder(t *testing.T) {
	root := t.TempDir()
	e := comparetest.Native(1)
	e.Cell.Engine = "exec:x/../../../out|\x00é"
	dir := comparetest.Write(t, root, "hostile", e)
	good(t, "report", dir, "--profile")
	want := filepath.Join(dir, "profile-2-exec-x-..-..-..-out---.json")
	if got, err := filepath.Glob(filepath.Join(dir, "profile-*")); err != nil || !slices.Equal(got, []string{want}) {
		t.Errorf("%q, %v; want %s", got, err, want)
	}
}

func TestDetails(t *testing.T) {
	dir := predictedRun(t, t.TempDir(), "details", 0.53125)
	for _, command := range []string{"report", "compare"} {
		short, long := good(t, command, dir), good(t, command, dir, "--details")
		for _, title := range []string{"\nPredicted and measured\n", "\nMemory by process and part\n"} {
			if strings.Contains(short, title) || !strings.Contains(long, title) {
				t.Errorf("%s: %q is not in the details alone", command, title)
			}
		}
	}
}
