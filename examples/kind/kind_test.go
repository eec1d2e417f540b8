package kind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/examples/exampletest"
	"llmparity/examples/kind"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 24)[1]
	c.New = func(*testing.T) engine.Engine { return kind.Kind.New("", &kind.Config{Delay: 1}, engine.Settings{}) }
	c.InProcess = true
	enginetest.Run(t, c)
}

// A package and a line in the registry add an engine with a flag, a section in plans, and its own answers.
func TestKindIsBuiltIn(t *testing.T) {
	program, dir := exampletest.Build(t, "kind"), t.TempDir()
	plan := "name: p\nengines: [example]\nmodel: tiny\nprompts: [The third clock]\nmax_tokens: 4\nexample: {delay: 20000}\n"
	check.Err(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(plan), 0o600))
	for _, c := range []struct {
		args []string
		ok   bool
		want string
	}{
		{[]string{"generate", "--engine", "example", "--example-delay", "1", "--max-tokens", "4", "--prompt",
			"The third clock"},
			true, "generated  4 tokens"},
		{[]string{"run", "--engines", "example", "--repetitions", "1", "--max-tokens", "8"}, true, "peak memory  "},
		{[]string{"generate", "--engine", "llamacpp", "--example-delay", "1"}, false, "--example-delay applies only to example"},
		{[]string{"plan", "check", "p.yaml"}, false, "p.yaml:6: example.delay: 20000 ms"},
		{[]string{"run", "--help-all"}, true, "milliseconds that the example waits"},
	} {
		cmd := exec.Command(program, c.args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v, want %q in\n%s", c.args, err, c.want, out)
		}
	}
}
