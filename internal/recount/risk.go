package recount

import (
	"encoding/json"
	"slices"
	"strconv"
)

// riskPlace is somewhere that memory must fit into, in bytes.
type riskPlace struct {
	Name, Level string
	Need        float64 `json:"need_bytes"`
	High        float64 `json:"high_bytes"`
	Free        float64 `json:"free_bytes"`
}

type riskSaid struct {
	Level   string
	Refused bool
	Places  []riskPlace
}

// bounded are places that end at a byte.
func (p riskPlace) bounded() bool {
	return p.Name == "webgpu-buffer" || p.Name == "wasm" || p.Name == "renderer"
}

// grave is how bad a place is: 0 is low, 2 high. What vLLM was given of its devices is of them to the byte, and is not
// told apart here.
func (p riskPlace) grave() int {
	switch {
	case p.Need > p.Free || !p.bounded() && p.Need > 0.95*p.Free:
		return 2
	case p.High > p.Free || !p.bounded() && p.Need > 0.80*p.Free:
		return 1
	}
	return 0
}

// heldBefore is what engines hold before a model is there.
func heldBefore(engine string) float64 {
	return map[string]float64{"webllm": 370, "ollama": 30}[engine] * (1 << 20)
}

// risks works out how grave each place is and all of them are, and what is needed.
func (c *check) risks(text []byte, page string) {
	c.Helper()
	var res struct {
		Cells []struct {
			Label string
			Run   int
			Spec  struct{ ID int }
			Risk  *riskSaid
		}
	}
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	levels := []string{"low", "medium", "high"}
	var rows [][]string
	doubt := false
	for i, cell := range res.Cells {
		r := cell.Risk
		if r == nil {
			continue
		}
		doubt = doubt || r.Refused || r.Level == "medium" || r.Level == "high"
		worst, filled := 0, -1.0
		knows := slices.ContainsFunc(r.Places, func(p riskPlace) bool { return p.Name == "ram" || p.Name == "vram" })
		for _, p := range r.Places {
			rows = append(rows, []string{cell.Label, levels[p.grave()], p.Name, megabytes(p.Need), megabytes(p.High),
				megabytes(p.Free)})
			if c.compared++; p.Level != levels[p.grave()] {
				c.Errorf("%s: the risk of %s is %s in the report, and %s worked out again", cell.Label, p.Name, p.Level,
					levels[p.grave()])
			}
			if by := p.Need / max(p.Free, 1); filled >= 0 && by > filled*(1+1e-12) {
				c.Errorf("%s: the risk of %s stands behind one of a place that has more room", cell.Label, p.Name)
			} else {
				filled = by
			}
			worst = max(worst, p.grave())
		}
		want := levels[worst]
		if worst == 0 && !knows {
			want = "unknown"
		}
		if c.compared++; r.Level != want {
			c.Errorf("%s: the level of risk is %s in the report, and %s worked out again", cell.Label, r.Level, want)
		}
		if c.compared++; r.Refused && (want != "high" || c.cells[i].Counted > 0) {
			c.Errorf("%s: it is refused at a risk that is %s, and has %d launches", cell.Label, want,
				c.cells[i].Counted)
		}
		if of := c.memory[cell.Run].cells[cell.Spec.ID]; of.foretold != nil {
			needs := of.needs(slices.ContainsFunc(r.Places, func(p riskPlace) bool { return p.Name == "vram" }))
			for _, p := range r.Places {
				c.need(cell.Label+", risk of "+p.Name, p, needs)
			}
		}
	}
	if doubt && len(rows) > 0 {
		c.riskTable(page, rows)
	}
}

// megabytes is a size in MiB as a page prints it.
func megabytes(bytes float64) string {
	switch v := bytes / mib; {
	case v > 0 && v < 0.0005:
		return "<0.001"
	case v > 0 && v < 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	default:
		return Digits(v)
	}
}

// riskTable is on the page where something is in doubt: then all places are.
func (c *check) riskTable(page string, want [][]string) {
	tables, err := Tables(page, "risk")
	if err != nil || len(tables) != 1 || len(tables[0].Rows) != len(want) {
		c.Errorf("the page has %d tables of risks, which should be one of %d places (%v)", len(tables), len(want), err)
		return
	}
	for i, row := range tables[0].Rows {
		if c.compared += len(want[i]); !slices.Equal(row[:6], want[i]) {
			c.Errorf("the page says of risks %q, and worked out again it is %q", row[:6], want[i])
		}
	}
}
