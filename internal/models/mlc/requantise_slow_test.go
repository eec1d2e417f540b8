//go:build slow

package mlc_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
)

// A requantised package has the weights of llama-quantize --pure, byte for byte.
func TestRequantisesAsLlamaQuantize(t *testing.T) {
	program := filepath.Join(cache.Dir(os.Getenv), "llamacpp", "current", "bin", "llama-quantize")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; run scripts/setup llamacpp-test", err)
	}
	for _, name := range []string{models.Tiny, models.SmolLM2} {
		t.Run(name, func(t *testing.T) {
			from, err := models.Path(name)
			check.Err(t, err)
			dir := t.TempDir()
			theirs, ours := filepath.Join(dir, "theirs.gguf"), filepath.Join(dir, "ours.gguf")
			text, err := exec.Command(program, "--pure", "--allow-requantize", from, theirs, "q4_0").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			_, err = mlc.Write(t.Context(), from, filepath.Join(dir, "package"),
				mlc.Options{ContextWindow: 128, Weights: mlc.Requantized})
			check.Err(t, err)
			g, err := mlc.AsGGUF(filepath.Join(dir, "package"), "ours")
			check.Err(t, err)
			check.Err(t, g.Write(t.Context(), ours))
			a, b := reopened(t, ours), reopened(t, theirs)
			compared := 0
			for _, want := range b.Tensors {
				got, ok := a.Tensor(want.Name)
				if !ok || got.Type != want.Type || len(want.Shape) == 2 && want.Type != gguf.Q4_0 {
					t.Errorf("%s: %v, want %v", want.Name, got.Type, want.Type)
					continue
				}
				x, err := io.ReadAll(a.Data(got))
				check.Err(t, err)
				y, err := io.ReadAll(b.Data(want))
				check.Err(t, err)
				if compared++; !bytes.Equal(x, y) {
					t.Errorf("%s differs", want.Name)
				}
			}
			t.Logf("%d tensors are equal", compared)
		})
	}
}

func reopened(t *testing.T, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	check.Err(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
