//go:build slow

package ci_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

// The template's script runs on the default branch and in a merge request, in the shell that the image has.
func TestTemplateRuns(t *testing.T) {
	s := serve(t)
	root, err := filepath.Abs("..")
	check.Err(t, err)
	build := exec.Command("make", "-C", root, "setup", "build") // the image has the program
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir, commit := repository(t, s, fmt.Sprintf(tiny, 2))
	at, err := url.Parse(s.URL)
	check.Err(t, err)
	play := func(inputs, env map[string]string) (string, error) {
		inputs["image"] = "llmparity"
		_, j := template(t, inputs)
		all := map[string]string{"PATH": filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "GITLAB_CI": "true",
			"LLMPARITY_SOURCE": root, "LLMPARITY_TOKEN": token, "CI_COMMIT_SHA": commit, "CI_PROJECT_ID": "12",
			"CI_API_V4_URL": s.URL + "/api/v4", "CI_SERVER_PROTOCOL": "http", "CI_SERVER_HOST": at.Hostname(),
			"CI_SERVER_PORT": at.Port(), "CI_PROJECT_PATH": "owner/app"}
		maps.Copy(all, j.Variables)
		maps.Copy(all, env)
		c := exec.Command("sh", "-e", "-c", strings.Join(j.Script, "\n"))
		c.Dir, c.Env = dir, environment(all)
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		return string(out), err
	}

	if _, err := play(map[string]string{"baseline": "main", "control": "engine=llamacpp"}, nil); err != nil {
		t.Errorf("on the default branch: %v", err)
	}
	if n := len(runsKept(t, s, "llmparity-history")); n != 1 || len(s.comments) > 0 {
		t.Errorf("the history has %d runs; %d comments", n, len(s.comments))
	}
	for _, name := range []string{"llmparity.xml", "llmparity-history.md", "public/index.html",
		".llmparity/baselines/main-*"} {
		if found, err := filepath.Glob(filepath.Join(dir, name)); err != nil || len(found) != 1 {
			t.Errorf("%s: %q, %v", name, found, err)
		}
	}

	// The runner's checkout may fetch: its remote has a token, as GitLab's has.
	git(t, dir, "remote", "set-url", "origin",
		strings.Replace(s.URL, "://", "://gitlab-ci-token:"+token+"@", 1)+"/owner/app.git")
	check.Err(t, os.Remove(filepath.Join(dir, "llmparity-comment.md")))
	_, err = play(map[string]string{"against": "main/plan.yaml"}, map[string]string{"CI_MERGE_REQUEST_IID": "7",
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"})
	if err != nil {
		t.Errorf("in a merge request: %v", err)
	}
	if len(s.comments) != 1 || strings.Count(s.comments[0].Body, "\n") >= 12 {
		t.Errorf("%+v", s.comments)
	}
	if n := len(runsKept(t, s, "llmparity-history")); n != 1 {
		t.Errorf("a merge request added to the history: %d runs", n)
	}

	write(t, filepath.Join(dir, "plan.yaml"), failing)
	_, err = play(map[string]string{}, map[string]string{"CI_MERGE_REQUEST_IID": "7"})
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok || failed.ExitCode() != 3 || !strings.Contains(s.comments[0].Body, "FAIL") {
		t.Errorf("a failed gate: %v, %+v", err, s.comments)
	}
}
