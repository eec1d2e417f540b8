package baseline_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/baseline"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func opened(t *testing.T, dir string) *record.Run {
	t.Helper()
	run, err := record.Open(dir)
	check.Err(t, err)
	return run
}

func TestBaselineIsTheRunThatWasSaved(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "first", comparetest.Native(6))
	for _, name := range []string{"report.html", "summary.csv", "profile-1-llamacpp.json", "gate.json"} {
		check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte("made of the record"), 0o644))
	}
	s := baseline.Store{Dir: filepath.Join(t.TempDir(), "store")}
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("a store that is not there: %v %v", all, err)
	}
	if _, err := s.Open("main"); !errors.Is(err, fs.ErrNotExist) || fault.Of(err) != fault.Usage ||
		!strings.Contains(err.Error(), "save one with") {
		t.Errorf("none is there: %v", err)
	}
	saved, err := s.Save("main", opened(t, dir), false)
	check.Err(t, err)
	got, err := s.Open("main")
	if err != nil || !reflect.DeepEqual(got, saved) {
		t.Errorf("%+v\n%+v %v", got, saved, err)
	}
	for _, name := range []string{"report.html", "summary.csv", "profile-1-llamacpp.json", "gate.json", "logs"} {
		if _, err := os.Stat(filepath.Join(got.Dir, name)); err == nil {
			t.Errorf("%s was copied", name)
		}
	}
	figures := func(dir string) string {
		text, err := json.Marshal(compare.Runs(opened(t, dir)).Cells)
		check.Err(t, err)
		return string(text)
	}
	if figures(dir) != figures(got.Dir) {
		t.Error("the copy gives other figures than the run")
	}
	if _, err := s.Open("mian"); err == nil || !strings.Contains(err.Error(), "available: main") {
		t.Errorf("a name that is not there: %v", err)
	}
}

func TestBaselineIsReplacedOnRequestOnly(t *testing.T) {
	root := t.TempDir()
	first, second := opened(t, comparetest.Write(t, root, "first", comparetest.Native(6))),
		opened(t, comparetest.Write(t, root, "second", comparetest.Browser(6)))
	s := baseline.Store{Dir: filepath.Join(root, "store")}
	a, err := s.Save("main", first, false)
	check.Err(t, err)
	if _, err := s.Save("main", second, false); fault.Of(err) != fault.Usage ||
		!strings.Contains(err.Error(), "--replace") {
		t.Errorf("%v", err)
	}
	if got, err := s.Open("main"); err != nil || got.SHA256 != a.SHA256 {
		t.Errorf("what was there is gone: %v", err)
	}
	b, err := s.Save("main", second, true)
	check.Err(t, err)
	if got, err := s.Open("main"); err != nil || got.Run != "second" || got.SHA256 != b.SHA256 {
		t.Errorf("%+v %v", got, err)
	}
	if again, err := s.Save("main", second, true); err != nil || again.SHA256 != b.SHA256 {
		t.Errorf("the same again: %v", err)
	}
	if _, err := s.Save("other", first, false); err != nil {
		t.Error(err)
	}
	all, err := s.List()
	if err != nil || len(all) != 2 || all[0].Name != "main" || all[1].Name != "other" {
		t.Errorf("%+v %v", all, err)
	}
	check.Also(t, s.Remove("main"))
	if err := s.Remove("main"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed twice: %v", err)
	}
	left, err := os.ReadDir(s.Dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}

func TestDamagedBaselineIsReported(t *testing.T) {
	root := t.TempDir()
	run := opened(t, comparetest.Write(t, root, "first", comparetest.Native(6)))
	s := baseline.Store{Dir: filepath.Join(root, "store")}
	b, err := s.Save("main", run, false)
	check.Err(t, err)
	rows := filepath.Join(b.Dir, "samples.csv")
	text := check.Read(t, rows)
	check.Err(t, os.WriteFile(rows, append(text, '\n'), 0o644))
	if _, err := s.Open("main"); fault.Of(err) != fault.BadRecord ||
		!strings.Contains(err.Error(), "changed after they were saved") {
		t.Errorf("%v", err)
	}
	if _, err := s.Save("main", run, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open("main"); err != nil {
		t.Errorf("saved anew: %v", err)
	}
	file := filepath.Join(s.Dir, "main.json")
	good := check.Read(t, file)
	// A sum that isn't one would have the copy lie outside the store, where Remove and Save would remove it.
	const outside = "/../../other" // as long as what folders' names have of a sum
	other := filepath.Join(root, "other")
	check.Err(t, os.Mkdir(other, 0o755))
	escaped := strings.NewReplacer(b.Folder, "main-"+outside, b.SHA256, outside+b.SHA256[len(outside):]).Replace(
		string(good))
	for _, bad := range []string{"", "{", `{"schema":"other/1"}`, escaped,
		strings.Replace(string(good), b.Folder, "../../etc", 1),
		strings.Replace(string(good), `"main"`, `"other"`, 1), strings.Replace(string(good), b.SHA256, "12", 1)} {
		check.Err(t, os.WriteFile(file, []byte(bad), 0o644))
		if _, err := s.Open("main"); fault.Of(err) != fault.BadRecord {
			t.Errorf("%q: %v", bad, err)
		}
	}
	check.Err(t, os.WriteFile(file, []byte(escaped), 0o644))
	if err := s.Remove("main"); err != nil {
		t.Errorf("a broken one can't be removed: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("what lies outside the store was removed with it: %v", err)
	}
	for _, name := range []string{"", "a/b", "../x", ".hidden", "a b", "main.json", strings.Repeat("x", 101)} {
		if _, err := s.Save(name, run, false); fault.Of(err) != fault.Usage {
			t.Errorf("%q is taken for a name: %v", name, err)
		}
	}
}
