package pagekind_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/examples/exampletest"
	"llmparity/examples/pagekind"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
)

func TestMain(m *testing.M) { childtest.Browsers(m, func() error { return nil }) }

func example(thread browser.Thread) engine.Engine {
	c := &pagekind.Config{Settings: browser.Defaults()}
	c.Thread = string(thread)
	return pagekind.Kind.New("", c, engine.Settings{})
}

func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 24)[1]
	c.New = func(*testing.T) engine.Engine { return example(browser.PageThread) }
	enginetest.Run(t, c)
}

// The same engine, unchanged, in another browser.
func TestConformanceInFirefox(t *testing.T) {
	if _, err := find.Chrome("firefox"); err != nil {
		t.Skip("no Firefox here: scripts/setup firefox")
	}
	if !check.Slow {
		t.Skip("a thorough test: package firefox tests the browser")
	}
	c := enginetest.Tiny(t, 24)[1]
	c.New = func(*testing.T) engine.Engine {
		c := &pagekind.Config{Settings: browser.Defaults()}
		c.Chrome = "firefox"
		return pagekind.Kind.New("", c, engine.Settings{})
	}
	enginetest.Run(t, c)
}

// In a worker, too, the page's ledger counts the engine's buffers, and tells the weights apart.
func TestLedgerCountsTheWeights(t *testing.T) {
	c := enginetest.Tiny(t, 8)[0]
	s, probe := enginetest.Open(t, example(browser.WorkerThread))
	enginetest.Load(t, s, c.Model)
	const weights = 4 * 426624
	if got := probe.Figures(t, browser.MethodLedger, "worker"); got["weights_bytes"] != weights ||
		got["live_bytes"] != weights || got["unattributed_bytes"] != 0 {
		t.Errorf("ledger: %v, want weights of %d bytes and nothing else", got, weights)
	}
	check.Err(t, s.Unload(t.Context()))
	if got := probe.Figures(t, browser.MethodLedger, "worker"); got["live_bytes"] != 0 {
		t.Errorf("after Unload: %v", got)
	}
}

// A package and a line in the registry add an engine with its own section in plans. It shares the browser's flags.
func TestKindIsBuiltIn(t *testing.T) {
	program, dir := exampletest.Build(t, "pagekind"), t.TempDir()
	for _, c := range []struct {
		args []string
		ok   bool
		want string
	}{
		{[]string{"generate", "--engine", "page-example", "--max-tokens", "4", "--prompt", "The third clock",
			"--thread", "worker"}, true, "generated  4 tokens"},
		{[]string{"run", "--engines", "page-example,webllm", "--repetitions", "1", "--max-tokens", "8",
			"--out", "results"}, true, "peak memory  "},
		{[]string{"generate", "--engine", "llamacpp", "--adapter", "gpu"}, false,
			" or page-example; omit it"},
	} {
		cmd := exec.Command(program, c.args...)
		cmd.Dir, cmd.Env = dir, os.Environ()
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v, want %q in\n%s", c.args, err, c.want, out)
		}
	}
}
