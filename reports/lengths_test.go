package reports_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/check"
	"llmparity/internal/record"
	"llmparity/reports/reportstest"
)

// sketched is a drawing as it stands in the page.
type sketched struct {
	Name    string
	Caption string
	Options struct {
		Series []struct {
			Name string
			Type string
			Data []json.RawMessage
		}
	}
}

// points of a series, by name; of several of one name the first. What is a gap is NaN.
func (s sketched) points(t *testing.T, name string) [][2]float64 {
	t.Helper()
	for _, series := range s.Options.Series {
		if series.Name != name {
			continue
		}
		var out [][2]float64
		for _, raw := range series.Data {
			var pair []any
			var datum struct{ Value []any }
			if json.Unmarshal(raw, &pair) != nil {
				if err := json.Unmarshal(raw, &datum); err != nil {
					t.Fatalf("%s: %s", name, raw)
				}
				pair = datum.Value
			}
			p := [2]float64{math.NaN(), math.NaN()}
			for i := range p {
				if v, ok := pair[i].(float64); ok {
					p[i] = v
				}
			}
			out = append(out, p)
		}
		return out
	}
	t.Fatalf("%s has no series %q", s.Name, name)
	return nil
}

// drawn are the charts of a report.
func drawn(t *testing.T, res *compare.Result, runs ...*record.Run) map[string][]sketched {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, colours.HTML(&b, res, runs...))
	out := map[string][]sketched{}
	check.Err(t, json.Unmarshal(reportstest.Drawings(t, b.Bytes()), &out))
	return out
}

func named(t *testing.T, charts map[string][]sketched, id, name string) sketched {
	t.Helper()
	for _, s := range charts[id] {
		if strings.HasPrefix(s.Name, name) {
			return s
		}
	}
	t.Fatalf("chart %s has no drawing %s", id, name)
	return sketched{}
}

// What is drawn over tokens and lengths is what the record says, worked out here by other code.
func TestFiguresOverTokensAndLengths(t *testing.T) {
	run := comparetest.Run(t, "lengths", prompted(6)...)
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	latency, memory := named(t, charts, "fig3_latency_vs_seqlen", "Request latency (ms)"),
		named(t, charts, "fig4_mem_vs_seqlen", "Peak memory (MiB)")
	for n, length := range []float64{16, 64, 256} {
		for engine, id := range map[string]int{"webllm": 10 + n, "llamacpp": 20 + n} {
			var took, peaks []float64
			for _, a := range run.Attempts {
				if a.Cell != id {
					continue
				}
				peak := 0.0
				for _, row := range a.Totals {
					if row.Method == record.MethodSmapsRollup {
						peak = max(peak, row.PSS)
					}
				}
				peaks = append(peaks, peak)
				took = append(took, float64(a.Requests[0].ReturnedNS-a.Requests[0].SentNS)/1e6)
			}
			for what, of := range map[*sketched][]float64{&latency: took, &memory: peaks} {
				slices.Sort(of)
				got, want := what.points(t, engine)[n], (of[2]+of[3])/2
				if got[0] != length || math.Abs(got[1]-want) > 0.001 {
					t.Errorf("%s of %s: %v, want %g at %g", what.Name, engine, got, want, length)
				}
				if dots := what.points(t, engine+", launches"); len(dots) != 18 {
					t.Errorf("%s of %s: %d dots, want one a launch", what.Name, engine, len(dots))
				}
			}
		}
	}
	growth := named(t, charts, "growth-input_len-0", "KV cache in f32, reserved")
	if theory := growth.points(t, "calculated"); theory[0][0] != 16 || theory[1][0] != 256 ||
		math.Abs(theory[1][1]-theory[0][1]-240*1024.0/record.MiB) > 1e-3 {
		t.Errorf("the calculated line is %v", theory)
	}
}

func TestLaunchesOverTokens(t *testing.T) {
	run := comparetest.Run(t, "one", comparetest.Browser(6))
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	over := named(t, charts, "tokens-0", "RSS sum")
	if mid, lo := over.points(t, "median"), over.points(t, "95% interval"); len(mid) != 65 || mid[64][0] != 64 ||
		len(lo) != 65 || lo[9][1] > mid[9][1] {
		t.Errorf("%d places up to %v, the interval from %v", len(mid), mid[len(mid)-1], lo[9])
	}
	lines := 0
	for _, s := range over.Options.Series {
		if strings.HasPrefix(s.Name, "launch ") {
			lines++
		}
	}
	if lines != 6 {
		t.Errorf("%d launches are drawn", lines)
	}
	gaps := charts["latency-inter_token_latency"][0]
	if curve := gaps.points(t, "webllm"); curve[0][1] != 0 || curve[len(curve)-1][1] != 100 {
		t.Errorf("the curve goes from %v to %v", curve[0], curve[len(curve)-1])
	}
	for _, id := range []string{"fig3_latency_vs_seqlen", "fig4_mem_vs_seqlen", "growth-input_len-0"} {
		if charts[id] != nil {
			t.Errorf("%s is drawn over one length", id)
		}
	}
}

// overLengthsShown looks at the charts that there are where prompts have several lengths.
func overLengthsShown(t *testing.T, p *tab, _ []*record.Run) {
	p.show(t, "lengths", comparetest.Run(t, "lengths", prompted(6)...))
	for _, width := range []int64{360, 1600} {
		p.size(t, width)
		checkSheet(t, "lengths", width, ask[sheet](t, p, look))
	}
	p.quiet(t)
}
