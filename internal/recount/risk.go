package recount

import (
	"encoding/json"
	"slices"
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

// grave is how bad a place is: 0 is low, 2 high. What vLLM was given of its devices is of them to the byte, and is not told apart here.
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

// risks works out how grave each place is and all of them are, and, of what is computed by the CPU, what is needed.
func (c *check) risks(text []byte) {
	c.Helper()
	var res struct {
		Cells []struct {
			Label string
			Run   int
			Spec  struct {
				ID     int
				Engine string
				Model  struct {
					Vocab float64 `json:"vocab_size"`
				}
			}
			Risk *riskSaid
		}
	}
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	levels := []string{"low", "medium", "high"}
	for i, cell := range res.Cells {
		r := cell.Risk
		if r == nil {
			continue
		}
		worst, filled := 0, -1.0
		knows := slices.ContainsFunc(r.Places, func(p riskPlace) bool { return p.Name == "ram" || p.Name == "vram" })
		for _, p := range r.Places {
			if c.compared++; p.Level != levels[p.grave()] {
				c.Errorf("%s: the risk of %s is %s in the report, and %s worked out again", cell.Label, p.Name, p.Level, levels[p.grave()])
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
			c.Errorf("%s: it is refused at a risk that is %s, and has %d launches", cell.Label, want, c.cells[i].Counted)
		}
		foretold := c.memory[cell.Run].cells[cell.Spec.ID].foretold
		if slices.ContainsFunc(r.Places, func(p riskPlace) bool { return p.Name == "vram" }) || foretold == nil {
			continue
		}
		for _, p := range r.Places {
			c.need(cell.Label+", risk of "+p.Name, p, cell.Spec.Engine, cell.Spec.Model.Vocab, foretold)
		}
	}
}

// need is what was foretold, and what is there before the model.
func (c *check) need(what string, p riskPlace, engine string, vocabulary float64, foretold map[string][3]float64) {
	var best, high float64
	switch p.Name {
	case "ram":
		part, ok := foretold["increase"]
		if !ok {
			part = foretold["total"]
		}
		best, high = part[1]*(1<<20)+heldBefore(engine), part[2]*(1<<20)+heldBefore(engine)
	case "renderer":
		best, high = foretold["framework_overhead"][1]*(1<<20), foretold["framework_overhead"][2]*(1<<20)
	case "wasm":
		best = 49<<20 + 72*vocabulary
		high = p.High // nobody says how much more it may be
	default:
		return // the largest tensor is not in a journal
	}
	c.about(what+", needed", p.Need, best, 1)
	c.about(what+", needed at most", p.High, high, 1)
	switch p.Name {
	case "renderer", "wasm":
		c.same(what+", free", p.Free, 4<<30)
	}
}
