package reports

import (
	"fmt"

	"llmparity/internal/figure"
)

// engineColours and partColours are how many colours the style sheet has for engines and for parts. A test computes
// that no two look alike to anyone.
const engineColours, partColours = 6, 7

// colour of a cell is its engine's.
func (v *view) colour(cell int) string {
	return fmt.Sprintf("var(--c%d)", v.engineColour()[v.res.Cells[cell].Spec.Engine]-1)
}

func (v *view) engineColour() map[string]int {
	out, taken := map[string]int{}, map[int]bool{}
	for _, own := range []bool{true, false} {
		for i := range v.res.Cells {
			engine := v.res.Cells[i].Spec.Engine
			c := v.own[engine]
			if out[engine] > 0 || own && (c == 0 || taken[c]) {
				continue
			}
			if !own {
				for c = 1; taken[c] && c <= engineColours; c++ {
				}
				if c > engineColours {
					c = len(out)%engineColours + 1
				}
			}
			out[engine], taken[c] = c, true
		}
	}
	return out
}

// partColour is the colour of a component, also where it is measured inside an engine.
var partColour = map[string]string{
	figure.ModelWeights: "var(--p0)", figure.Weights: "var(--p0)",
	figure.KVCache: "var(--p1)", figure.KVReserved: "var(--p1)", figure.KVUsed: "var(--p1)",
	figure.Activations: "var(--p2)", figure.Workspaces: "var(--p2)",
	figure.JSHeap: "var(--p3)", figure.Wasm: "var(--p4)", figure.MultiGPUOverhead: "var(--p4)",
	figure.ArrayBuffers: "var(--p5)", figure.BrowserShare: "var(--p5)",
	figure.Unattributed: "var(--p6)", figure.FrameworkOverhead: "var(--p6)",
}
