package cost_test

import (
	"math"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// page is a page in which the library of the native cells computes, seven times as slowly.
func page() comparetest.Engine {
	e := comparetest.Native(6)
	e.Cell.Engine, e.Info.Name = "inpage", "inpage"
	e.Info.Parts = map[string]string{"browser": "Chromium 156.0"}
	e.Info.Computes, e.Info.Vector = "ggml", 128
	e.Token, e.TTFT = 7*e.Token, 17*e.TTFT
	return e
}

// native is a program whose vectors have so many bits.
func native(bits int) comparetest.Engine {
	e := comparetest.Native(6)
	e.Info.Computes, e.Info.Vector = "ggml", bits
	if bits < 512 {
		e.Token *= 2
		e.Cell.Settings = map[string]string{"path": "narrow"}
	}
	return e
}

func run(t *testing.T, engines ...comparetest.Engine) *compare.Result {
	t.Helper()
	for i := range engines {
		engines[i].Cell.ID, engines[i].Cell.Setup = i+1, i+1
	}
	return compare.Runs(comparetest.Run(t, "cost", engines...))
}

func TestCostIsTakenApartByANarrowBuild(t *testing.T) {
	r := run(t, page(), native(512), native(128))
	if len(r.Costs) != 1 {
		t.Fatalf("%d costs, want 1", len(r.Costs))
	}
	c := r.Costs[0]
	if c.Browser != 0 || c.Native != 1 || c.Narrow == nil || *c.Narrow != 2 ||
		c.NativeVector != 512 || c.BrowserVector != 128 {
		t.Fatalf("%+v", c)
	}
	for _, row := range c.Rows {
		if row.Figure != figure.DecodeTPS {
			continue
		}
		product := row.Vectors.Times * row.Rest.Times
		if math.Abs(row.Whole.Times-7) > 0.5 || math.Abs(row.Vectors.Times-2) > 0.2 ||
			math.Abs(product/row.Whole.Times-1) > 1e-4 {
			t.Errorf("%v times is %v and %v", row.Whole.Times, row.Vectors.Times, row.Rest.Times)
		}
		if i := row.Whole.Interval; i == nil || i.Lo > 7 || i.Hi < 7 {
			t.Errorf("interval %v of 7 times", i)
		}
	}
	a := answer.Of(r)
	check.Has(t, a.Cost.Sentence(), "inpage decodes at 0.14", " of llamacpp's speed. 95% CI 0.1",
		"same file, same CPU, 1 thread each", "times for vectors of 128 bits instead of 512", "for the browser, its compiler and its version of ggml")
}

func TestCostWithoutANarrowBuildIsWhole(t *testing.T) {
	r := run(t, page(), native(512))
	if len(r.Costs) != 1 || r.Costs[0].Narrow != nil || r.Costs[0].Rows[0].Rest != nil {
		t.Fatalf("%+v", r.Costs)
	}
	check.Has(t, answer.Of(r).Cost.Sentence(), "was not measured")
}

// Only one library on one device, with the same weights and threads, tells what the browser costs.
func TestUnlikeCellsTellNoCost(t *testing.T) {
	for name, change := range map[string]func(*comparetest.Engine){
		"threads":      func(e *comparetest.Engine) { e.Info.Policy = map[string]string{"threads": "2"} },
		"library":      func(e *comparetest.Engine) { e.Info.Computes = "tvm" },
		"unknown":      func(e *comparetest.Engine) { e.Info.Computes = "" },
		"device":       func(e *comparetest.Engine) { e.Device = comparetest.Browser(6).Device },
		"file":         func(e *comparetest.Engine) { e.Cell.Model.SHA256 = "other" },
		"other values": func(e *comparetest.Engine) { e.Info.Weights = record.OtherValues },
		"max tokens":   func(e *comparetest.Engine) { e.Cell.MaxTokens++ },
	} {
		e := page()
		change(&e)
		if r := run(t, e, native(512)); len(r.Costs) > 0 {
			t.Errorf("other %s: %+v", name, r.Costs[0])
		}
	}
}
