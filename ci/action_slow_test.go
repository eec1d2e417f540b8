//go:build slow

package ci_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

// tiny is a plan with few launches.
const tiny = `name: ci
engines: [webllm, llamacpp]
model: tiny
prompts: [Once upon a time]
max_tokens: 16
warmup: {launches: 0}
repetitions: %d
parity: false
gate:
  decode_tps: {min: 0.1}
  inconclusive: warn
`

// failing has a limit that no launch keeps, however busy the machine is.
var failing = strings.Replace(fmt.Sprintf(tiny, 1), "decode_tps: {min: 0.1}", "peak_uss_mb: {max: 1}", 1)

// job is a job of a workflow that uses the action.
type job struct {
	t        *testing.T
	dir      string            // the checkout
	temp     string            // where GitHub's files are
	of       map[string]string // what expressions have
	env      map[string]string
	uploaded []string
}

// play does the steps one after another as a runner does, and returns whether one failed.
func (j *job) play(a action, with map[string]string) (failed bool) {
	for name, in := range a.Inputs {
		j.of["inputs."+name] = filled(j.t, *in.Default, j.of)
	}
	for name, v := range with {
		j.of["inputs."+name] = v
	}
	for i, s := range a.Runs.Steps {
		if s.If == "" && failed || s.If != "" && !strings.Contains(s.If, "always()") && failed ||
			s.If != "" && expression(j.t, s.If, j.of) == "" {
			j.of["steps."+s.ID+".outcome"] = "skipped"
			continue
		}
		outcome := "success"
		if s.Run == "" {
			j.use(s)
		} else if err := j.run(i, s); err != nil {
			failed, outcome = true, "failure"
			j.t.Logf("step %d: %v", i+1, err)
		}
		j.of["steps."+s.ID+".outcome"] = outcome
	}
	return failed
}

// use does what can be done here of others' actions: what is uploaded must be there.
func (j *job) use(s step) {
	if !strings.HasPrefix(s.Uses, "actions/upload-artifact@") {
		return
	}
	for pattern := range strings.FieldsSeq(filled(j.t, s.With["path"], j.of)) {
		found, err := filepath.Glob(filepath.Join(j.dir, pattern))
		check.Err(j.t, err)
		if len(found) == 0 {
			j.t.Errorf("%s would be uploaded, and is not there", pattern)
		}
		j.uploaded = append(j.uploaded, found...)
	}
}

// run runs a step's script.
func (j *job) run(i int, s step) error {
	file := func(name string) string { return filepath.Join(j.temp, fmt.Sprint(name, i)) }
	env := maps.Clone(j.env)
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_PATH"} {
		env[name] = file(name)
		write(j.t, env[name], "")
	}
	for name, text := range s.Env {
		env[name] = filled(j.t, text, j.of)
	}
	script := file("script") + ".sh"
	write(j.t, script, s.Run)
	c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script) // as GitHub runs "shell: bash"
	c.Dir, c.Env = j.dir, environment(env)
	out, err := c.CombinedOutput()
	j.t.Logf("step %d %s\n%s", i+1, s.ID, out)
	text, wrong := os.ReadFile(env["GITHUB_OUTPUT"])
	check.Err(j.t, wrong)
	for line := range strings.Lines(string(text)) {
		name, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			j.t.Errorf("step %d: output %q", i+1, line)
		}
		j.of["steps."+s.ID+".outputs."+name] = v
	}
	paths, wrong := os.ReadFile(env["GITHUB_PATH"])
	check.Err(j.t, wrong)
	for line := range strings.Lines(string(paths)) {
		j.env["PATH"] = strings.TrimSpace(line) + ":" + j.env["PATH"]
	}
	return err
}

// The action's steps run on the main branch, on a pull request, and where the gate fails.
func TestActionRuns(t *testing.T) {
	a, s := theAction(t), serve(t)
	here, err := filepath.Abs("github")
	check.Err(t, err)
	dir, commit := repository(t, s, fmt.Sprintf(tiny, 2))
	begin := func(event string) *job {
		j := &job{t: t, dir: dir, temp: t.TempDir(), of: map[string]string{"github.action_path": here,
			"github.token": token, "github.event_name": event, "github.repository": "owner/app", "runner.os": "Linux",
			"runner.arch": "X64", "runner.name": "here", "github.run_id": "1"}}
		j.env = map[string]string{"PATH": os.Getenv("PATH"), "GITHUB_SHA": commit, "GITHUB_REPOSITORY": "owner/app",
			"GITHUB_SERVER_URL": s.URL, "GITHUB_API_URL": s.URL + "/api",
			"GITHUB_STEP_SUMMARY": filepath.Join(j.temp, "summary.md")}
		write(t, j.env["GITHUB_STEP_SUMMARY"], "")
		if event == "pull_request" {
			j.of["github.event.pull_request.number"] = "7"
			j.of["github.event.pull_request.head.repo.full_name"] = "owner/app"
		}
		return j
	}

	// A push to the main branch: the run becomes the baseline run, and the first of the history.
	push := begin("push")
	settings := map[string]string{"history": "llmparity-history", "control": "engine=llamacpp", "site": "public",
		"baseline": "main"}
	if push.play(a, settings) {
		t.Fatal("it failed")
	}
	if n := len(runsKept(t, s, "llmparity-history")); n != 1 {
		t.Errorf("the history has %d runs", n)
	}
	check.Has(t, read(t, push.env["GITHUB_STEP_SUMMARY"]), "PASS", "no change in", "1 run")
	for _, name := range []string{"llmparity-history.md", "llmparity-comment.md", "public"} {
		if !strings.Contains(strings.Join(push.uploaded, " "), filepath.Join(dir, name)) {
			t.Errorf("%s is not uploaded: %q", name, push.uploaded)
		}
	}

	// Another push, while somebody else's checkout added to the branch: it is in the remote alone.
	git(t, dir, "branch", "--quiet", "-D", "llmparity-history")
	if again := begin("schedule"); again.play(a, settings) {
		t.Error("the second run failed")
	}
	if n := len(runsKept(t, s, "llmparity-history")); n != 2 {
		t.Errorf("the history has %d runs", n)
	}

	// A pull request: both sides in turn, and a comment.
	git(t, dir, "worktree", "add", "--quiet", "--detach", "main", commit)
	pull := begin("pull_request")
	if pull.play(a, map[string]string{"against": "main/plan.yaml", "history": "llmparity-history"}) {
		t.Error("the pull request's job failed")
	}
	if n := len(runsKept(t, s, "llmparity-history")); n != 2 {
		t.Errorf("a pull request added to the history: %d runs", n)
	}
	if len(s.comments) != 1 || strings.Count(s.comments[0].Body, "\n") >= 12 {
		t.Fatalf("%+v", s.comments)
	}
	check.Has(t, s.comments[0].Body, "<!-- llmparity -->")

	// A failed gate: the comment changes, the record is uploaded, and the job fails with the run's exit code.
	write(t, filepath.Join(dir, "plan.yaml"), failing)
	pull = begin("pull_request")
	if !pull.play(a, nil) || pull.of["steps.run.outputs.code"] != "3" || len(pull.uploaded) == 0 {
		t.Errorf("a failed gate: %v", pull.of)
	}
	if len(s.comments) != 1 || !strings.Contains(s.comments[0].Body, "FAIL") {
		t.Errorf("%+v", s.comments)
	}

	// Nothing was measured: the job fails at once.
	write(t, filepath.Join(dir, "plan.yaml"), "nonsense: 1\n")
	if broken := begin("push"); !broken.play(a, settings) || broken.of["steps.run.outputs.folder"] != "" {
		t.Error("a plan that is none passed")
	}
}
