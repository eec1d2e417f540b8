// Package exampletest builds llmparity with an example engine, for tests.
package exampletest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/schematest"
)

// Build builds the program with an example's engine added to the registry: one line, and its import.
func Build(t *testing.T, example string) string {
	t.Helper()
	root := schematest.Root(t)
	dir := t.TempDir()
	registry := filepath.Join(root, "internal", "kinds", "kinds.go")
	text := check.Read(t, registry)
	added := strings.Replace(string(text), "\tprotocol.Kind,\n", "\tprotocol.Kind,\n\t"+example+".Kind,\n", 1)
	added = strings.Replace(added, "import (\n", "import (\n\t\"llmparity/examples/"+example+"\"\n", 1)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {registry: filepath.Join(dir, "kinds.go")}})
	check.Err(t, err)
	for name, text := range map[string]string{"kinds.go": added, "overlay.json": string(overlay)} {
		check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	program := filepath.Join(dir, "llmparity")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program,
		"./cmd/llmparity")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
