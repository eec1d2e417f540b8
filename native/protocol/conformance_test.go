package protocol_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/native/protocol"
)

// example builds the example engine.
func example(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	if out, err := exec.Command("go", "build", "-o", path, "../../examples/engine").CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	return path
}

func TestConformanceOfTheExample(t *testing.T) {
	path := example(t)
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine {
		return protocol.New(protocol.Config{Command: protocol.Command{Name: "engine", Argv: []string{path}}})
	}
	enginetest.Run(t, c)
}
