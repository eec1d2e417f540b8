package memory_test

import (
	"reflect"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
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

// eachFigure goes through all figures of a value, wherever they are.
func eachFigure(v reflect.Value, do func(evidence.Figure)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachFigure(v.Elem(), do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachFigure(v.Index(i), do)
		}
	case reflect.Struct:
		if f, ok := v.Interface().(evidence.Figure); ok {
			do(f)
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachFigure(v.Field(i), do)
			}
		}
	}
}

func TestEveryFigureSaysHowItWasObtained(t *testing.T) {
	served := comparetest.Native(6)
	served.Cell.Model = record.Model{Name: "m", Format: "served"}
	seen := map[record.Origin]int{}
	for name, run := range map[string]*record.Run{
		"ledger": measured(t, 6), "log": logged(t), "file": comparetest.Run(t, "file", comparetest.Native(6)),
		"server":  comparetest.Run(t, "server", served),
		"traffic": comparetest.Run(t, "traffic", comparetest.Mixed(comparetest.Native(6), 1, 2, 12, 2)),
	} {
		res := compare.Runs(run)
		eachFigure(reflect.ValueOf(res), func(f evidence.Figure) {
			seen[f.Origin]++
			switch {
			case f.Known() != (f.Origin != "") || f.Known() != (f.From() != ""):
				t.Errorf("%s: %s is known: %v, origin %q", name, f.Name, f.Known(), f.Origin)
			case f.Origin == record.OriginMeasured && f.Method == "":
				t.Errorf("%s: %s was measured by nothing", name, f.Name)
			}
		})
	}
	for _, o := range []record.Origin{record.OriginMeasured, record.OriginReported, record.OriginCalculated,
		record.OriginFileSize} {
		if seen[o] == 0 {
			t.Errorf("no figure is %s", o)
		}
	}
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
