package webllm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

// A build that has no package.json beside it is named by its file and its hash, so that two of them differ.
func TestBundleWithoutAVersionIsNamedByItsFile(t *testing.T) {
	dir := t.TempDir()
	named := func(file, text string) string {
		path := filepath.Join(dir, file)
		check.Err(t, os.WriteFile(path, []byte("export class MLCEngine {} // "+text), 0o600))
		b, err := (&WebLLM{config: Config{Bundle: path}}).bundle(t.Context(), nil)
		check.Err(t, err)
		return b.String()
	}
	first, second := named("pr.js", "one"), named("pr.js", "two")
	if !strings.HasPrefix(first, "WebLLM pr.js (") || len(first) != len("WebLLM pr.js (1234567)") || first == second {
		t.Errorf("builds %q and %q", first, second)
	}
	check.Err(t, os.WriteFile(filepath.Join(dir, "package.json"),
		[]byte(`{"name": "@mlc-ai/web-llm", "version": "0.0.1"}`), 0o600))
	if got := named("pr.js", "one"); got != "WebLLM 0.0.1" {
		t.Errorf("beside a package: %q", got)
	}
}
