package llamacpp

import (
	"testing"

	"llmparity/internal/engine"
)

// Of a batch that is smaller than what is computed at a time no more than that is computed, and no larger workspaces
// are had.
func TestNoMoreIsComputedThanIsHandedOver(t *testing.T) {
	for _, c := range []struct {
		batch, ubatch int
		want          string
	}{{0, 0, ""}, {64, 0, "64"}, {64, 128, "64"}, {0, 128, "128"}, {1024, 0, "512"}, {0, 4096, "2048"},
		{4096, 4096, "4096"}} {
		s := New(Config{Batch: c.batch, UBatch: c.ubatch}).Settings(engine.Model{})
		if s["ubatch"] != c.want {
			t.Errorf("of %d at a time, handed over by %d, %q are computed, want %q", c.ubatch, c.batch, s["ubatch"],
				c.want)
		}
	}
}
