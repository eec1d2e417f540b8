// Package chart draws: each function turns a result, and the records it was made of, into charts with the options of
// echarts and a table of the same figures. The page and figures for paper show them.
package chart

import (
	"fmt"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports/plain"
)

// engineColours and partColours are how many colours the style sheet has for engines and for parts. A test computes
// that no two look alike to anyone.
const engineColours, partColours = 6, 7

// Colour of a cell is its engine's.
func (v *View) Colour(cell int) string {
	return fmt.Sprintf("var(--c%d)", v.engineColour()[v.Res.Cells[cell].Spec.Engine]-1)
}

func (v *View) engineColour() map[string]int {
	out, taken := map[string]int{}, map[int]bool{}
	for _, own := range []bool{true, false} {
		for i := range v.Res.Cells {
			engine := v.Res.Cells[i].Spec.Engine
			c := v.Own[engine]
			if out[engine] > 0 || own && (c == 0 || c > engineColours || taken[c]) {
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
	// the browser's own: colours that no other part of such a bar has, or p5 in other patterns
	figure.GPUProcess: "var(--p5)", figure.TransferBuffers: "var(--p3)", figure.PageCopies: "var(--p4)",
	figure.PageHeaps: "var(--p5)", otherBrowser: "var(--p3)",
	figure.Unattributed: "var(--p6)", figure.FrameworkOverhead: "var(--p6)",
}

// Chart is a figure of the report: one or more drawings to choose from, with an accessible name and a table.
type Chart struct {
	ID       string
	Title    string
	Unit     string
	Note     string   // how to read it, in two lines at most
	More     []string // what else there is to know, folded below the caption
	Setup    string   // what ran, in its caption; figures for paper have it always
	Label    string   // accessible name
	Drawings []Drawing
	Choice   string // what tells the drawings apart
	Chosen   int    // the drawing shown first
	Table    *plain.Grid
	Wide     bool   // on paper it takes both columns
	Height   int    // of the plot in pixels; 0: as the style sheet says
	Cell     int    // the number of the one cell that it shows, from 1
	Along    string // where a record has the axis along which cells differ; empty: it is not drawn along one
}

// Drawing is one of a chart's drawings.
type Drawing struct {
	Name    string         `json:"name"`
	Caption string         `json:"caption"`
	Options map[string]any `json:"options"` // of echarts
	// Figure is the name of the row that it draws along an axis; empty: it draws others, or several
	Figure string `json:"-"`
	// of one launch, or of what was repeated in place of them
	OfOneLaunch bool `json:"-"`
}

// View is what figures are drawn from.
type View struct {
	Res   *compare.Result
	Runs  []*record.Run
	Own   map[string]int // colours of engines, from 1
	Paper bool           // for figures of their own, which no page's size bounds
}

// launchesDrawn is how many launches a drawing shows at most: fewer with many cells, to keep the page small.
func (v *View) launchesDrawn() int {
	const most, least, together = 20, 4, 80
	if v.Paper {
		return most
	}
	return max(least, min(most, together/max(1, len(v.Res.Cells))))
}

// MostNarrow is how many cells the chart of components has room for.
const MostNarrow = 4
