//go:build slow

package webllm

import (
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// A model that exceeds the page's quota is no other failure, wherever it was to be stored.
func TestQuota(t *testing.T) {
	for _, storage := range []string{record.CacheAPI, record.IndexedDB, record.OPFS} {
		t.Run(storage, func(t *testing.T) {
			w, m := packed(t, Config{}), tinyModel(t)
			w.settings.Storage = storage
			s, err := opened(watched(t), w, &keeping{}, answering(asServed))
			check.Err(t, err)
			defer func() { check.Also(t, s.Close()) }()
			check.Err(t, s.Limit(watched(t), 1<<20))
			enginetest.OneLine(t, s.Load(watched(t), m), fault.Quota, record.Quota, "free space")
		})
	}
}
