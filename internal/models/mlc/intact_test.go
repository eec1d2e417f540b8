package mlc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/tiny"
)

// damage flips a bit in the middle of a package's first shard.
func damage(t *testing.T, dir string) (shard string) {
	t.Helper()
	shard = filepath.Join(dir, "params_shard_0.bin")
	b := check.Read(t, shard)
	b[len(b)/2] ^= 0x80
	check.Err(t, os.WriteFile(shard, b, 0o600))
	return shard
}

// A shard with another MD5 than the package's list is named with both, and nothing is written.
func TestDamagedPackageDoesNotBecomeGGUF(t *testing.T) {
	_, p := packageOf(t, tiny.Spec{}, Options{})
	var c cache
	readJSON(t, p.Dir, "tensor-cache.json", &c)
	g, err := AsGGUF(p.Dir, "model")
	check.Err(t, err)
	check.Err(t, g.Intact(t.Context()))
	damage(t, p.Dir)
	target := filepath.Join(t.TempDir(), "model.gguf")
	err = g.Write(t.Context(), target)
	if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "params_shard_0.bin is damaged: its MD5 is ") ||
		!strings.Contains(err.Error(), "instead of "+c.Records[0].MD5+"; make or download it again") {
		t.Errorf("%v", err)
	}
	alone(t, filepath.Dir(target))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Intact(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
