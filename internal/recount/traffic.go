package recount

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
)

// traffic is what a cell says of how requests come, as far as figures hang on it.
type traffic struct {
	Goal *struct {
		TTFT float64 `json:"ttft_ms"`
		TPOT float64 `json:"tpot_ms"`
		E2E  float64 `json:"e2e_ms"`
	}
}

// due is when a request was to be sent.
func (r *request) due() int64 {
	if r.Due > 0 {
		return r.Due
	}
	return r.Sent
}

// again works out the percentiles of requests, of one kind or all; and what all of them come to.
func (t *traffic) again(c *Cell, counted []*attempt, kind string, rates bool) map[string]Figure {
	out := map[string]Figure{}
	of := map[string][][]float64{} // by launch
	for n, a := range counted {
		for _, name := range []string{"ttft", "queueing", "itl", "tpot", "e2e"} {
			of[name] = append(of[name], nil)
		}
		for _, r := range a.measured() {
			if kind != "" && r.Kind != kind {
				continue
			}
			for name, values := range r.takes() {
				of[name][n] = append(of[name][n], values...)
			}
		}
	}
	for name, launches := range of {
		for _, percent := range []int{50, 90, 95, 99} {
			var f Figure
			for n, values := range launches {
				sort.Float64s(values)
				if len(values) == 0 || percent > 50 && len(values)*(100-percent) < 100 {
					f = Figure{} // too few of one launch are too few
					break
				}
				f.keep(counted[n].id, values[(percent*len(values)+99)/100-1], false)
			}
			c.conclude(&f)
			out[fmt.Sprintf("%s_p%d", name, percent)] = f
		}
	}
	if rates {
		maps.Copy(out, t.rates(c, counted))
	}
	return out
}

// takes are what a request took, in ms.
func (r *request) takes() map[string][]float64 {
	out := map[string][]float64{"queueing": {float64(r.Sent-r.due()) / 1e6}, "e2e": {float64(r.Returned-r.due()) / 1e6},
		"itl": r.waits("inter_token_latency")}
	if len(r.times) > 0 {
		out["ttft"] = []float64{float64(r.times[0]-r.due()) / 1e6}
	}
	if tps, ok := r.figures()["decode_tps"]; ok {
		out["tpot"] = []float64{1000 / tps}
	}
	return out
}

func (t *traffic) rates(c *Cell, counted []*attempt) map[string]Figure {
	var tps, rate, good, share Figure
	for _, a := range counted {
		first, last, returned, tokens, kept := math.Inf(1), math.Inf(-1), math.Inf(-1), 0.0, 0.0
		requests := a.measured()
		for _, r := range requests {
			first, returned = min(first, float64(r.due())), max(returned, float64(r.Returned))
			tokens += r.figures()["tokens"]
			if n := len(r.times); n > 0 {
				last = max(last, float64(r.times[n-1]))
			}
			if t.Goal == nil {
				continue
			}
			took, bad := r.takes(), false
			for name, most := range map[string]float64{"ttft": t.Goal.TTFT, "tpot": t.Goal.TPOT, "e2e": t.Goal.E2E} {
				bad = bad || most > 0 &&
					!(len(took[name]) == 1 && took[name][0] <= most || name == "tpot" && len(r.times) == 1)
			}
			if !bad {
				kept++
			}
		}
		tps.keep(a.id, tokens/(last-first)*1e9, false)
		rate.keep(a.id, float64(len(requests))/(returned-first)*1e9, false)
		if t.Goal != nil {
			good.keep(a.id, kept/(returned-first)*1e9, false)
			failed := len(slices.DeleteFunc(slices.Clone(a.requests),
				func(r *request) bool { return r.Phase != "failed" }))
			share.keep(a.id, 100*kept/float64(len(requests)+failed), false)
		}
	}
	out := map[string]Figure{"aggregate_tps": tps, "requests_per_s": rate, "goodput": good, "goodput_share": share}
	for name, f := range out {
		c.conclude(&f)
		out[name] = f
	}
	return out
}

// loads hold what a report says of traffic.
func (c *check) loads(text []byte) {
	var res struct {
		Cells []struct {
			Load *struct {
				Figures []figure
				Kinds   []struct {
					Kind    string
					Figures []figure
				}
			}
		}
	}
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	for i, cell := range res.Cells {
		label, mine := c.res.Cells[i].Label, c.cells[i]
		if c.present(label+": traffic", cell.Load != nil, mine.load != nil && mine.Counted > 0); cell.Load == nil {
			continue
		}
		c.loaded(label, cell.Load.Figures, mine.load)
		for _, k := range cell.Load.Kinds {
			c.loaded(label+", "+k.Kind, k.Figures, mine.kinds[k.Kind])
		}
		c.same(label+": kinds", float64(len(cell.Load.Kinds)), float64(len(mine.kinds)))
	}
}

func (c *check) loaded(label string, said []figure, mine map[string]Figure) {
	left := maps.Clone(mine)
	for _, f := range said {
		c.either(label+": "+f.Name, f, mine[f.Name])
		delete(left, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if len(left[name].Values) > 0 {
			c.Errorf("%s: the report has no %s", label, name)
		}
	}
}
