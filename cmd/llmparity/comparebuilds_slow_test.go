//go:build slow

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/internal/kit/fault"
)

// stalled is WebLLM's module with a busy loop of so many milliseconds in each decode step. Versions before 0.2.86
// sample in decodeStep itself.
func stalled(t *testing.T, module string, ms int) string {
	t.Helper()
	const step = "    decodeStep(genConfig) {"
	before, after, found := strings.Cut(module, step)
	head, tail, timed := strings.Cut(after, "const tstart = performance.now();")
	if !found || !timed {
		t.Fatal("the module has no decode step")
	}
	loop := fmt.Sprintf("const tstart = performance.now(); while (performance.now() - tstart < %d) {}", ms)
	return before + step + head + loop + tail
}

// A build with a planted stall of 3 ms a token fails, in the first line of the output and of the page; an equal one
// does not fail. It takes a quiet machine.
func TestCompareBuildsFindsAStall(t *testing.T) {
	browserTest(t)
	module, err := bundle.Script()
	check(t, err)
	cmd := program(t, "compare-builds", "main.js", "pr.js", "--aa", "--inconclusive", "warn")
	for name, text := range map[string]string{"main.js": string(module), "same.js": string(module),
		"pr.js": stalled(t, string(module), 3)} {
		put(t, cmd.Dir, name, text)
	}
	stdout, said, code := output(t, cmd)
	first, _, _ := strings.Cut(stdout, "\n")
	if code != fault.Gate.ExitCode() || !strings.HasPrefix(first, "pr.js is ") ||
		!strings.Contains(first, "% slower than main.js") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, said)
	}
	mentions(t, stdout, "Same tokens, same scores", "noise")
	page, err := os.ReadFile(filepath.Join(cmd.Dir, "results", "latest", "report.html"))
	check(t, err)
	mentions(t, string(page), first)
	stdout, said, code = output(t, resumed(cmd, "compare-builds", "main.js", "same.js", "--inconclusive", "warn"))
	if code != 0 {
		t.Errorf("equal builds: exit code %d\n%s%s", code, stdout, said)
	}
	mentions(t, stdout, "No difference above ")
}
