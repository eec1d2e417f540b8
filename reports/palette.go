package reports

import (
	"fmt"

	"llmparity/internal/figure"
)

// engineColours is how many colours of engines the style sheet has, partColours how many of processes and parts. Within
// each no two are alike to anybody, which a test computes.
const engineColours, partColours = 6, 7

// ownColour is an engine's colour wherever it is told of: in every chart, and in every report.
func ownColour(engine string) (int, bool) {
	c, ok := map[string]int{"webllm": 0, "llamacpp": 1, "ollama": 2, "openai": 3, "wllama": 4, "hf": 4,
		"llamacpp-oneshot": 5}[engine]
	return c, ok
}

// colour of a cell: one an engine, whichever cell or run it is in. Engines that have none of their own take what is
// left.
func (v *view) colour(cell int) string {
	return fmt.Sprintf("var(--c%d)", v.engineColour()[v.res.Cells[cell].Spec.Engine])
}

func (v *view) engineColour() map[string]int {
	out, taken := map[string]int{}, map[int]bool{}
	for _, own := range []bool{true, false} {
		for i := range v.res.Cells {
			engine := v.res.Cells[i].Spec.Engine
			if _, done := out[engine]; done {
				continue
			}
			c, ok := ownColour(engine)
			if own && (!ok || taken[c]) {
				continue
			}
			if !own {
				for c = 0; taken[c] && c < engineColours; c++ {
				}
				if c == engineColours {
					c = len(out) % engineColours
				}
			}
			out[engine], taken[c] = c, true
		}
	}
	return out
}

// partColour is that of a component's layer, and of what is read inside an engine for it.
var partColour = map[string]string{
	figure.ModelWeights: "var(--p0)", figure.Weights: "var(--p0)",
	figure.KVCache: "var(--p1)", figure.KVReserved: "var(--p1)", figure.KVUsed: "var(--p1)",
	figure.Activations: "var(--p2)", figure.Workspaces: "var(--p2)",
	figure.JSHeap: "var(--p3)", figure.Wasm: "var(--p4)", figure.MultiGPUOverhead: "var(--p4)",
	figure.ArrayBuffers: "var(--p5)", figure.BrowserShare: "var(--p5)",
	figure.Unattributed: "var(--p6)", figure.FrameworkOverhead: "var(--p6)",
}
