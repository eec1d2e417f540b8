package comparetest

import (
	"errors"
	"fmt"

	"llmparity/internal/record"
)

// Matrix has three engines, one on two adapters, with a model in two dtypes. The reference implementation computed
// both. One engine reports neither scores nor token ids. With the quantised weights, the browser is wrong on one
// adapter and refused on the other, and that engine says something else.
func Matrix() []Engine {
	right := func(int, int) float64 { return 0 }
	wrong := func(position, rank int) float64 {
		if position == 50 && rank == 2 {
			return 0.4
		}
		return 0
	}
	var out []Engine
	add := func(e Engine, dtype string, scores func(int, int) float64) *Engine {
		e.Cell.ID, e.Cell.Setup = len(out)+1, len(out)+1
		e.Cell.Model.DType, e.Cell.Model.SHA256 = dtype, fmt.Sprintf("%x", dtype)
		if e.Check.Arithmetic = []string{"float32"}; scores != nil {
			e.Checked = Scores(scores)
		}
		out = append(out, e)
		return &out[len(out)-1]
	}
	on := func(adapter, name string) Engine {
		e := Browser(1)
		e.Cell.Settings, e.Device.Name = map[string]string{"adapter": adapter}, name
		return e
	}
	anchor := func(e *Engine) {
		e.Anchored = Scores(right)
		e.Check.Anchor = &record.Anchor{SHA256: e.Cell.Model.SHA256, Yardsticks: map[string]float64{"float32": 1e-5}}
	}
	for _, dtype := range []string{"F32", "Q4_0"} {
		quantised := dtype != "F32"
		scores := right
		if quantised {
			scores = wrong
		}
		add(on("swiftshader", "SwiftShader"), dtype, scores)
		if other := add(on("lavapipe", "llvmpipe"), dtype, nil); quantised {
			other.Refused = errors.New("the adapter lacks shader-f16")
		} else {
			other.Failing = map[int]record.Class{1: "device-lost"}
		}
		anchor(add(Native(1), dtype, right))
		if served := add(Served(1), dtype, nil); quantised {
			served.Text = "But " + served.Text
		}
	}
	return out
}
