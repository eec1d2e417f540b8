// Package ci_test checks the action for GitHub and the template for GitLab, and runs their scripts step by step, with
// the real program, git and Python. Actions of others (uses:) can't run outside of GitHub: their inputs are held
// against those that they document.
package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	check.Err(t, err)
	return string(text)
}

// parses checks a script's syntax.
func parses(t *testing.T, shell, where, script string) {
	t.Helper()
	c := exec.Command(shell, "-n")
	c.Stdin = strings.NewReader(script)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", where, err, out)
	}
}

func TestScriptsParse(t *testing.T) {
	parses(t, "sh", "history.sh", read(t, "history.sh"))
	for _, name := range []string{"history.sh", "comment.py"} {
		if !strings.HasPrefix(read(t, name), "#!/") {
			t.Errorf("%s has no first line", name)
		}
	}
}

// repository makes a repository with a plan and a remote that wants a token, and a checkout of it.
func repository(t *testing.T, s *server, plan string) (checkout, commit string) {
	t.Helper()
	bare := filepath.Join(s.git, "owner", "app.git")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	git(t, bare, "config", "http.receivepack", "true")
	checkout = filepath.Join(t.TempDir(), "work")
	git(t, "", "clone", "--quiet", bare, checkout)
	check.Err(t, os.WriteFile(filepath.Join(checkout, "plan.yaml"), []byte(plan), 0o600))
	git(t, checkout, "add", "plan.yaml")
	git(t, checkout, "-c", "user.name=Jane", "-c", "user.email=jane@example.com", "commit", "--quiet", "-m",
		"Add a plan")
	git(t, checkout, "push", "--quiet", "origin", "HEAD:main")
	git(t, checkout, "remote", "set-url", "origin", s.URL+"/owner/app.git")
	return checkout, git(t, checkout, "rev-parse", "HEAD")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// runsKept are the runs in the history's branch of the remote.
func runsKept(t *testing.T, s *server, branch string) []string {
	t.Helper()
	return strings.Fields(git(t, filepath.Join(s.git, "owner", "app.git"), "ls-tree", "--name-only", branch, "runs/"))
}

// environment is what a script gets: little of this machine's, and what the CI sets.
func environment(set map[string]string) []string {
	out := []string{"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOFLAGS", "LLMPARITY_CACHE", "LLMPARITY_CHROME",
		"XDG_CACHE_HOME"} {
		if v, ok := os.LookupEnv(name); ok && set[name] == "" {
			out = append(out, name+"="+v)
		}
	}
	for name, v := range set {
		out = append(out, name+"="+v)
	}
	slices.Sort(out)
	return out
}

func write(t *testing.T, name, text string) {
	t.Helper()
	check.Err(t, os.MkdirAll(filepath.Dir(name), 0o755))
	check.Err(t, os.WriteFile(name, []byte(text), 0o600))
}
