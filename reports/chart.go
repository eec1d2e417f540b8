package reports

import (
	"fmt"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
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

// chart is a figure of the report: one or more drawings to choose from, with an accessible name and a table.
type chart struct {
	ID       string
	Title    string
	Unit     string
	Note     string // how to read it
	Label    string // accessible name
	Drawings []drawing
	Choice   string // what tells the drawings apart
	Chosen   int    // the drawing shown first
	Table    *grid
	Wide     bool // on paper it takes both columns
	Height   int  // of the plot in pixels; 0: as the style sheet says
	Cell     int  // the number of the one cell that it shows, from 1
}

// drawing is one of a chart's drawings.
type drawing struct {
	Name    string  `json:"name"`
	Caption string  `json:"caption"`
	Options options `json:"options"`
	// of one launch, or of what was repeated in place of them
	ofOneLaunch bool
}

// view is what figures are drawn from.
type view struct {
	res   *compare.Result
	runs  []*record.Run
	own   map[string]int // colours of engines, from 1
	paper bool           // for figures of their own, which no page's size bounds
}

// launchesDrawn is how many launches a drawing shows at most: fewer with many cells, to keep the page small.
func (v *view) launchesDrawn() int {
	const most, least, together = 20, 4, 80
	if v.paper {
		return most
	}
	return max(least, min(most, together/max(1, len(v.res.Cells))))
}

// mostNarrow is how many cells the chart of components has room for.
const mostNarrow = 4
