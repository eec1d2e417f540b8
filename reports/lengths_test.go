package reports_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/reportstest"
)

// sketched is a drawing as it stands in the page.
type sketched struct {
	Name    string
	Caption string
	Options struct {
		XAxis []struct {
			AxisLabel struct{ CustomValues []float64 }
		}
		YAxis  []struct{ Name string }
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
	return s.drawn(t, name, "")
}

// drawn is points of a series of a type.
func (s sketched) drawn(t *testing.T, name, as string) [][2]float64 {
	t.Helper()
	for _, series := range s.Options.Series {
		if series.Name != name || as != "" && series.Type != as {
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
	out := map[string][]sketched{}
	check.Err(t, json.Unmarshal(reportstest.Drawings(t, []byte(pageOf(t, res, runs...))), &out))
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
				if dots := what.drawn(t, engine, "scatter"); len(dots) != 18 {
					t.Errorf("%s of %s: %d dots, want one a launch", what.Name, engine, len(dots))
				}
			}
		}
	}
	if charts["growth-input_len"] != nil {
		t.Error("memory over prompts is drawn twice")
	}
}

// A sweep along an axis that no chart is written for has charts: of the table, or an engine's own field. Values that
// are no numbers have none.
func TestFiguresOverAnyAxis(t *testing.T) {
	var engines []comparetest.Engine
	for n, value := range []float64{0, 0.7, 1.5} {
		hot, wide, low := comparetest.Native(6), comparetest.Native(6), comparetest.Browser(6)
		hot.Cell.ID, hot.Cell.Temperature = 10+n, value
		wide.Cell.ID, wide.Cell.Settings = 20+n, map[string]string{"ubatch": fmt.Sprint(64 << n)}
		low.Cell.ID, low.Cell.Settings = 30+n, map[string]string{"power_preference": fmt.Sprint("p", n)}
		engines = append(engines, hot, wide, low)
	}
	run := comparetest.Run(t, "any", engines...)
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	for axis, want := range map[string][]float64{"temperature": {0, 0.7, 1.5}, "ubatch": {64, 128, 256}} {
		for id, name := range map[string]string{"latency_vs_": "Time to first token (ms)",
			"speed_vs_": "Decode", "memory_vs_": "Peak memory (MiB)"} {
			d := named(t, charts, id+axis, name)
			var at []float64
			for _, s := range res.Sweeps {
				if s.Axis == axis {
					for _, p := range d.points(t, s.Label) {
						at = append(at, p[0])
					}
				}
			}
			if !slices.Equal(at, want) || !slices.Equal(d.Options.XAxis[0].AxisLabel.CustomValues, want) {
				t.Errorf("%s%s: points at %v, ticks at %v", id, axis, at, d.Options.XAxis[0].AxisLabel.CustomValues)
			}
		}
	}
	for id := range charts {
		if strings.HasSuffix(id, "power_preference") {
			t.Errorf("%s is drawn without numbers", id)
		}
	}
	figures, err := colours.Figures(false, res, run)
	check.Err(t, err)
	at := slices.Index(reports.FigureNames(figures), "latency_vs_ubatch")
	if at < 0 || !strings.HasPrefix(figures[at].Title, "Latency by ubatch: ") ||
		!strings.HasSuffix(figures[at].Source, ", cell") {
		t.Errorf("figures %q", reports.FigureNames(figures))
	}
}

// Memory over contexts has a chart for each engine, with ticks where something was measured; the KV cache has one for
// all engines, with the formula's line.
func TestFigureOverContexts(t *testing.T) {
	var engines []comparetest.Engine
	for n, context := range []int64{256, 512, 1024} {
		page := comparetest.Page()
		page.KVReserved = context << 10
		browser := comparetest.Measured(comparetest.Browser(6), page)
		for id, e := range []comparetest.Engine{browser, comparetest.Native(6)} {
			e.Cell.ID, e.Cell.Model.Context = 10*(id+1)+n, int(context)
			e.Info.Policy = map[string]string{"kv_dtype": "f32", "context": fmt.Sprint(context)}
			engines = append(engines, e)
		}
	}
	run := comparetest.Run(t, "contexts", engines...)
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	var o sketched
	for n, engine := range []string{"webllm", "llamacpp"} {
		peak := named(t, charts, fmt.Sprintf("growth-context-%d", n), "Peak memory (MiB)")
		if line := peak.points(t, engine); len(line) != 3 || line[2][0] != 1024 {
			t.Errorf("%s: %v", engine, line)
		}
		o = peak
	}
	at := o.Options.XAxis[0].AxisLabel.CustomValues
	if !slices.Equal(at, []float64{256, 512, 1024}) || o.Options.YAxis[0].Name != "Peak memory (MiB)" {
		t.Errorf("ticks at %v, of %q", at, o.Options.YAxis[0].Name)
	}
	cache := charts["growth-context"][0]
	if line := cache.points(t, "webllm"); len(line) != 3 || line[2][0] != 1024 || line[2][1] != 1 {
		t.Errorf("the cache is at %v", line)
	}
	if line := cache.points(t, "webllm, formula"); line[0][1] != 0 || line[1][0] != 1024 ||
		math.Abs(line[1][1]-1024*1024.0/record.MiB) > 1e-3 {
		t.Errorf("the formula's line is %v", line)
	}
	if !strings.Contains(cache.Caption, "webllm: 1024 bytes/token, measured (no spread: every launch gave the same value)") {
		t.Errorf("caption %q", cache.Caption)
	}
	figures, err := colours.Figures(false, res, run)
	check.Err(t, err)
	names := slices.DeleteFunc(reports.FigureNames(figures),
		func(name string) bool { return !strings.HasPrefix(name, "growth-") })
	if len(names) != 5 || names[0] != "growth-context" ||
		!slices.Contains(names, "growth-context-webllm-memory-by-context") ||
		!slices.Contains(names, "growth-context-llamacpp-memory-by-context-memory-increase-mib") ||
		slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "rss") }) {
		t.Errorf("figures %q", names)
	}
	text := strings.Join(reportstest.Lines(t, pageOf(t, res, run), "where"), " ")
	for _, want := range []string{"webllm on SwiftShader: tiny, KV cache in f32, 6 launches a cell.", "llamacpp on the CPU: tiny"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q beneath a figure in %s", want, text)
		}
	}
	if strings.Contains(text, "webllm, context 256 | within launches") ||
		!strings.Contains(text, "Left out: slopes within launches of") {
		t.Errorf("what grows beside a reserved cache stands among the slopes over contexts: %s", text)
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
		if s.Name == "launches" {
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
	for _, id := range []string{"fig3_latency_vs_seqlen", "fig4_mem_vs_seqlen", "growth-context"} {
		if charts[id] != nil {
			t.Errorf("%s is drawn over one length", id)
		}
	}
}

// overLengthsShown looks at the charts that there are where prompts have several lengths.
func overLengthsShown(t *testing.T, p *tab) {
	for _, width := range []int64{360, 1600} {
		p.size(t, width)
		checkSheet(t, "lengths", width, ask[sheet](t, p, look))
	}
}

// loaded are two engines at several numbers of clients, one of which takes one request at a time, and both with a mix.
func loaded(launches int) []comparetest.Engine {
	var out []comparetest.Engine
	for n, clients := range []int{1, 2, 4} {
		a, b := comparetest.Loaded(comparetest.Browser(launches), 2*n+1, clients, 20*clients),
			comparetest.Loaded(comparetest.Native(launches), 2*n+2, clients, 20*clients)
		a.Slots = 1
		out = append(out, a, b)
	}
	return append(out, comparetest.Mixed(comparetest.Native(launches), 7, 4, 40, 8))
}

func TestTrafficInReport(t *testing.T) {
	run := comparetest.Run(t, "load", loaded(6)...)
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	tps := named(t, charts, "fig2_tps_vs_concurrency", "Tokens/s of all requests (tokens/s)")
	web, native := tps.points(t, "webllm"), tps.points(t, "llamacpp")
	if len(web) != 3 || len(native) != 3 || native[2][0] != 4 || native[2][1] < 3.5*native[0][1] ||
		web[2][1] > 1.2*web[0][1] {
		t.Errorf("webllm %v, llamacpp %v", web, native)
	}
	for _, id := range []string{"fig1_mem_vs_concurrency", "latency_vs_concurrency", "fig5_mixed_lengths_latency"} {
		if len(charts[id]) == 0 {
			t.Errorf("no chart %s", id)
		}
	}
	tails := named(t, charts, "fig5_mixed_lengths_latency", "Time to first token (ms)")
	if len(tails.Options.Series) != 2 || !strings.Contains(tails.Options.Series[0].Name, ": short with others") {
		t.Errorf("%+v", tails.Options.Series)
	}
}
