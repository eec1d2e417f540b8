package bisect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
)

// simulated is a search over ten versions with a planted change.
func simulated(t *testing.T, folder string, o *oracle) *Search {
	t.Helper()
	s := &Search{Folder: folder, Rules: Defaults(), Say: func(string) {},
		Question: Question{Axis: "webllm", Figure: "decode_tps", How: []string{"--model", "tiny"}}}
	for v := range 10 {
		s.Question.Versions = append(s.Question.Versions, fmt.Sprint("0.2.", 77+v))
	}
	s.Measure = func(_ context.Context, version string) (float64, string, error) {
		var v int
		_, err := fmt.Sscanf(version, "0.2.%d", &v)
		return o.value(v - 77), "launches/" + version, err
	}
	return s
}

// A version that fails once in every round, and then does not, is no version that can't be measured.
func TestSearchForgivesSingleFailures(t *testing.T) {
	s := simulated(t, t.TempDir(), planted(7))
	measure, tries := s.Measure, 0
	s.Measure = func(ctx context.Context, version string) (float64, string, error) {
		if tries++; version == "0.2.81" && tries%2 == 1 {
			return 0, "", errors.New("a hiccup")
		}
		return measure(ctx, version)
	}
	a, err := s.Do(t.Context())
	check.Err(t, err)
	if a.Outcome != Found || a.BadVersion != "0.2.81" || len(a.Skipped) > 0 {
		t.Errorf("%+v", a)
	}
}

func planted(seed uint64) *oracle {
	return &oracle{random: rand.New(rand.NewPCG(seed, 1)), at: 4, change: -0.1, noise: 0.02}
}

// A search that is interrupted at every launch, in the middle of a line too, ends as one that is not.
func TestSearchContinues(t *testing.T) {
	want, err := simulated(t, t.TempDir(), planted(7)).Do(t.Context())
	check.Err(t, err)
	if want.GoodVersion != "0.2.80" || want.BadVersion != "0.2.81" || want.Outcome != Found || len(want.Measured) > 7 {
		t.Errorf("%+v", want)
	}
	check.Has(t, want.Text("decode speed", 0.05), "0.2.81 changed decode speed: -", "against 0.2.80", "95% CI",
		fmt.Sprint(want.Launches, " launches of "))

	document, err := json.Marshal(want)
	check.Err(t, err)
	schematest.Valid(t, "bisect", document)

	folder, o := t.TempDir(), planted(7)
	path := filepath.Join(folder, file)
	var got *Answer
	for n := 0; got == nil; n++ {
		s := simulated(t, folder, o)
		ctx, cancel := context.WithCancel(t.Context())
		measure, made := s.Measure, 0
		s.Measure = func(ctx context.Context, version string) (float64, string, error) {
			if made++; made > 1 {
				cancel()
				return 0, "", ctx.Err()
			}
			return measure(ctx, version)
		}
		got, err = s.Do(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		f, opening := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		check.Err(t, opening)
		_, err := f.WriteString(`{"round":9,"ver`)
		check.Err(t, errors.Join(err, f.Close()))
		cancel()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	other := simulated(t, folder, o)
	other.Question.Figure = "ttft"
	_, err = other.Do(t.Context())
	if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "something else") {
		t.Errorf("another question in the same folder: %v", err)
	}
}

// A version that fails is tried twice and then passed over; a failing end ends the search.
func TestSearchSkipsWhatFails(t *testing.T) {
	s := simulated(t, t.TempDir(), planted(7))
	measure, tried := s.Measure, 0
	s.Measure = func(ctx context.Context, version string) (float64, string, error) {
		if version == "0.2.81" {
			tried++
			return 0, "", errors.New("it has\nno library")
		}
		return measure(ctx, version)
	}
	a, err := s.Do(t.Context())
	check.Err(t, err)
	if tried != 2 || a.GoodVersion != "0.2.80" || a.BadVersion != "0.2.82" ||
		a.Skipped["0.2.81"] != "it has no library" {
		t.Errorf("tried %d times; %+v", tried, a)
	}
	check.Has(t, a.Text("decode speed", 0.05), "0.2.81 was skipped: it has no library",
		"0.2.82, or a skipped version before it, changed")
	s = simulated(t, t.TempDir(), planted(7))
	s.Measure = func(context.Context, string) (float64, string, error) { return 0, "", nil }
	if _, err := s.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "can't be measured: decode_tps is 0") {
		t.Errorf("a figure of 0: %v", err)
	}
}

func TestBetween(t *testing.T) {
	dir := check.Tree(t, t.TempDir(), map[string]string{"b9/server": "", "b10/server": "", "b11/server": "",
		"b100/server": "", "b10-rc1/server": "", "other": ""})
	at := filepath.Join(dir, "{}", "server")
	llama, err := AxisNamed("llamacpp")
	check.Err(t, err)
	for _, c := range []struct {
		good, bad string
		given     []string
		want      string
	}{
		{"b9", "b100", nil, "b9 b10 b11 b100"},
		{"b11", "b9", nil, "b11 b10 b9"}, // newer is good
		{"x", "z", []string{"w", "x", "y", "z"}, "x y z"},
		{"b9", "b12", nil, "version b12 is not among the versions: b9, b10, b11, b100"},
		{"b9", "b9", nil, "--good and --bad are the same"},
	} {
		got, err := llama.Between(t.Context(), c.good, c.bad, at, c.given)
		said := strings.Join(got, " ")
		if err != nil {
			said = err.Error()
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("from %s to %s: %s, want %s", c.good, c.bad, said, c.want)
		}
	}
	if _, err := AxisNamed("webllmm"); err == nil || !strings.Contains(err.Error(), `"webllm"`) {
		t.Errorf("an unknown axis: %v", err)
	}
}

// Commits are those on the first-parent line, from good on.
func TestCommits(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	script := check.Script(t, `set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main .
for n in 1 2 3; do git commit -q --allow-empty -m $n; git tag v$n; done
git checkout -q -b side v1 && git commit -q --allow-empty -m beside && git checkout -q main
git merge -q --no-ff -m merge side && git tag v4`, dir, "make.sh")
	out, err := exec.Command(script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	axis, err := AxisNamed("git")
	check.Err(t, err)
	got, err := axis.Between(t.Context(), "v2", "v4", "out/{}.js", nil)
	check.Err(t, err)
	if len(got) != 3 || len(got[0]) != 40 {
		t.Errorf("commits %q", got)
	}
	for _, names := range [][2]string{{"v4", "v2"}, {"v9", "v4"}, {"--all", "v4"}} {
		if _, err := axis.Between(t.Context(), names[0], names[1], "", nil); fault.Of(err) != fault.Usage {
			t.Errorf("from %s to %s: %v", names[0], names[1], err)
		}
	}
}

// A command makes the file of a version that has none, and gets the version as one word.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	p := Program{Axis: Axes[0], At: filepath.Join(dir, "{}.js"), Build: "cd " + dir + " && echo {} > {}.js"}
	got, err := p.chosen(t.Context(), "0.2.77")
	check.Err(t, err)
	text := string(check.Read(t, filepath.Join(dir, "0.2.77.js")))
	if text != "0.2.77\n" || got[0] != "--webllm-bundle" {
		t.Errorf("%v has %q", got, text)
	}
	p.Build = "exit 3"
	_, err = p.chosen(t.Context(), "0.2.78")
	if err == nil || !strings.Contains(err.Error(), "exit 3: exit status 3") {
		t.Errorf("a failing command: %v", err)
	}
	p.Build = "true"
	if _, err := p.chosen(t.Context(), "0.2.78"); err == nil || !strings.Contains(err.Error(), "has no file") {
		t.Errorf("a command that makes nothing: %v", err)
	}
	for _, version := range []string{"-rf", "../x", "a b", "$(x)", "a;b", ""} {
		_, err := p.Question(t.Context(), "0.2.77", version, []string{"0.2.77", version})
		if fault.Of(err) != fault.Usage {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
