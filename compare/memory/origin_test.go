package memory_test

import (
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// logged is a native engine whose log tells its sizes.
func logged(t *testing.T) *record.Run {
	return comparetest.Logged(comparetest.Run(t, "log", comparetest.Measured(comparetest.Native(6), nil)),
		map[string]float64{
			"weights_bytes": 8 << 20, "kv_reserved_bytes": 4 << 20, "kv_used_bytes": 1 << 20,
			"workspaces_bytes": 3 << 20})
}

func TestOriginsOfComponents(t *testing.T) {
	const m, r, c = record.OriginMeasured, record.OriginReported, record.OriginCalculated
	for name, want := range map[string]struct {
		parts                                                             *memory.Parts
		weights, reserved, filled, activations, framework, increase, peak record.Origin
	}{
		"ledger": {partsOf(t, measured(t, 6)), m, m, c, m, c, m, m},
		"log":    {partsOf(t, logged(t)), r, r, c, r, c, m, m},
		"file": {partsOf(t, comparetest.Run(t, "file", comparetest.Native(6))), record.OriginFileSize, c, c, "", c, m,
			m},
	} {
		for component, origin := range map[string]record.Origin{figure.ModelWeights: want.weights,
			figure.KVCache:     want.reserved,
			figure.KVCacheUsed: want.filled, figure.Activations: want.activations,
			figure.FrameworkOverhead: want.framework,
			figure.MemoryIncrease:    want.increase, figure.TotalMemory: want.peak} {
			f := want.parts.Component(component)
			if f.Origin != origin {
				t.Errorf("%s: %s is %q, want %q", name, component, f.Origin, origin)
			}
			arithmetic := origin == record.OriginFileSize || origin == c && component != figure.FrameworkOverhead
			if f.Known() && (f.Interval == nil) != arithmetic {
				t.Errorf("%s: %s, which is %s: interval %+v", name, component, origin, f.Interval)
			}
		}
	}
}
