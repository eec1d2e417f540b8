package reports_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/reportstest"
)

// randomRuns are engines whose launches differ, of which more or less is known.
func randomRuns(t *testing.T, r *rand.Rand) []*record.Run {
	t.Helper()
	launches := 1 + r.IntN(8)
	web, llama := comparetest.Browser(launches), comparetest.Native(1+r.IntN(8))
	web.Vary, llama.Vary = 0.3*r.Float64(), 0.3*r.Float64()
	if r.IntN(4) > 0 {
		web = comparetest.Measured(web, comparetest.Page())
	}
	if web.Inside != nil && r.IntN(3) > 0 {
		web = comparetest.Mapped(web)
	}
	web.NoPSS = r.IntN(8) == 0
	web.Reused, web.Cell.Reused = launches > 1 && r.IntN(6) == 0, false
	web.Cell.Reused = web.Reused
	if !web.Reused {
		web.Warmup = r.IntN(2) == 0
	}
	if launches > 3 && !web.Reused {
		web.Failing = map[int]record.Class{1 + r.IntN(3): record.DeviceLost}
	}
	mib := func() float64 { return 1 + 40*r.Float64() }
	parts, whole := []record.Predicted{}, 0.0
	for _, name := range []string{figure.ModelWeights, figure.KVCache, figure.Activations, figure.FrameworkOverhead} {
		part := comparetest.Predict(name, 0, mib(), 100, "f32")
		parts, whole = append(parts, part), whole+float64(part.Best)/record.MiB
	}
	web.Prediction = &record.Prediction{Source: "webllm-package",
		Parts: append(parts, comparetest.Predict(figure.MemoryIncrease, 0, whole, 1000, ""))}
	run := comparetest.Run(t, "random", web, llama)
	logged := map[string]float64{}
	for _, name := range []string{"weights_bytes", "kv_reserved_bytes", "kv_used_bytes", "workspaces_bytes"} {
		logged[name] = math.Round(mib() * record.MiB / 4)
	}
	for _, a := range run.Attempts {
		for i := range a.Metrics { // a ledger whose parts grow at each other's expense
			if m := &a.Metrics[i]; m.Name == "workspaces_bytes" || m.Name == "unattributed_bytes" {
				m.Value += float64(r.IntN(20 << 20))
			}
		}
		live(a)
	}
	if r.IntN(2) == 0 {
		comparetest.Logged(native(run), logged)
	}
	if r.IntN(3) == 0 {
		computesOnGPU(run, r)
	}
	return []*record.Run{run}
}

// native leaves the second engine's launches, which share them with the whole run.
func native(run *record.Run) *record.Run {
	out := *run
	out.Attempts = slices.DeleteFunc(slices.Clone(run.Attempts), func(a *record.Attempt) bool { return a.Cell != 2 })
	return &out
}

// live makes the ledger the sum of its parts.
func live(a *record.Attempt) {
	sums := map[record.Phase]float64{}
	parts := []string{"weights_bytes", "kv_reserved_bytes", "workspaces_bytes", "unattributed_bytes"}
	for _, m := range a.Metrics {
		if slices.Contains(parts, m.Name) {
			sums[m.Edge] += m.Value
		}
	}
	for i := range a.Metrics {
		if m := &a.Metrics[i]; m.Name == "live_bytes" && sums[m.Edge] > 0 {
			m.Value = sums[m.Edge]
		}
	}
}

// computesOnGPU moves the second engine to a GPU, with some buffers in the host's memory.
func computesOnGPU(run *record.Run, r *rand.Rand) {
	for _, a := range native(run).Attempts {
		for i := range a.Events {
			if d := a.Events[i].Device; d != nil {
				a.Events[i].Device = &record.Device{Class: record.GPU, Name: "Example GPU"}
			}
		}
		a.Sources[91] = record.Source{Role: "server", Method: "nvml_process", PID: 4000}
		a.Sources[92] = record.Source{Role: "server", Method: "engine_log"}
		for _, p := range []record.Phase{record.Load, record.Measure} {
			span, _ := a.Phase(p)
			held := float64(60<<20 + r.IntN(40<<20))
			a.Metrics = append(a.Metrics,
				record.MetricRow{Source: 91, NS: span.EndNS - 1000, Name: "gpu_memory_bytes", Value: held},
				record.MetricRow{Source: 92, NS: span.EndNS, Edge: p, Name: "weights.CPU_Mapped_bytes",
					Value: 3<<20 + 12_345})
		}
	}
}

// table is one of a page or a document: its rows by the titles of columns.
type table []map[string]string

// tablesOf reads the tables of a page.
func tablesOf(t *testing.T, page string) (out []table) {
	var head []string
	for _, line := range reportstest.Lines(t, page, "") {
		fields := strings.Split(strings.TrimPrefix(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "| "):
			head = nil
		case head == nil || fields[0] == "cell":
			head, out = fields, append(out, nil)
		default:
			row := map[string]string{}
			for i, field := range fields[:min(len(fields), len(head))] {
				row[head[i]] = field
			}
			out[len(out)-1] = append(out[len(out)-1], row)
		}
	}
	return out
}

// shown reads a size; false where there is none.
func shown(text string) (float64, bool) {
	text, _, _ = strings.Cut(text, " (")
	if strings.HasPrefix(text, "<") || strings.HasPrefix(text, ">") {
		return 0, true // less than the last digit
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// sums holds the parts of tables against their wholes, and counts the wholes.
type sums struct {
	*testing.T
	where  string
	wholes map[string]int
}

func (s *sums) hold(row map[string]string, whole string, parts ...string) {
	s.Helper()
	want, ok := shown(row[whole])
	sum, some := 0.0, 0
	for _, part := range parts {
		if v, ok := shown(row[part]); ok {
			sum, some = sum+v, some+1
		}
	}
	if !ok || some == 0 {
		return
	}
	if s.wholes[whole]++; math.Abs(sum-want) > 1e-6 {
		s.Errorf("%s: the parts of %s come to %v, and not to %s: %v", s.where, whole, sum, row[whole], row)
	}
}

// table holds those that have parts and their whole, in a row or a column.
func (s *sums) table(rows table) {
	s.Helper()
	byCell := map[string]map[string]string{}
	for _, row := range rows {
		if row["MiB of"] != "" {
			s.hold(row, "peak", "baseline", "increase")
		}
		if _, known := shown(row["everything else"]); known {
			s.hold(row, "increase", "weights", "KV reserved", "activations", "browser growth", "everything else",
				"multi-GPU", "in host memory")
		}
		for column, text := range row {
			name := row["component"] + row["memory"]
			if name != "" && !slices.Contains([]string{"component", "memory", "launch"}, column) {
				key := row["cell"] + "\n" + column
				if byCell[key] == nil {
					byCell[key] = map[string]string{}
				}
				byCell[key][name] = text
			}
		}
	}
	rest := []string{"everything else", "growth of the browser itself and everything else"}
	for _, column := range byCell {
		if _, known := shown(column[rest[0]] + column[rest[1]]); known {
			s.hold(column, "baseline to peak", append(rest, "model weights", "KV cache, reserved",
				"activations, workspaces", "multi-GPU overhead", "in host memory, not on the GPU",
				"growth of the browser itself")...)
		}
		var beyond []string
		for _, r := range figure.Rows(func(r *figure.Row) bool { return r.Beyond }) {
			beyond = append(beyond, r.Title)
		}
		s.hold(column, beyond[0], beyond[1:len(beyond)-1]...)
		s.hold(column, "WebGPU ledger", "weights", "KV cache, reserved", "workspaces", "unattributed")
	}
}

// bars holds where the bars of a page end against the labels beside them.
func (s *sums) bars(page string) {
	s.Helper()
	var drawings map[string][]struct {
		Options struct {
			YAxis []struct {
				Data []string `json:"data"`
			} `json:"yAxis"`
			Series []struct {
				Type string            `json:"type"`
				Data []json.RawMessage `json:"data"`
			} `json:"series"`
		} `json:"options"`
	}
	check.Err(s, json.Unmarshal(reportstest.Drawings(s, []byte(page)), &drawings))
	for id, all := range drawings {
		for _, d := range all {
			if len(d.Options.YAxis) == 0 || len(d.Options.YAxis[0].Data) == 0 {
				continue
			}
			for bar, label := range d.Options.YAxis[0].Data {
				_, text, labelled := strings.Cut(label, "\n")
				want, ok := shown(strings.Split(text+" ", " ")[0])
				if !labelled || !ok {
					continue
				}
				end := 0.0
				for _, series := range d.Options.Series {
					var of struct {
						Value any `json:"value"`
					}
					if series.Type == "bar" && bar < len(series.Data) {
						check.Err(s, json.Unmarshal(series.Data[bar], &of))
						size, _ := of.Value.(float64) // "-" is none
						end += size
					}
				}
				_, decimals, _ := strings.Cut(strings.Split(text, " ")[0], ".")
				s.wholes["bars of "+id]++
				if unit := math.Pow10(-len(decimals)); math.Abs(end-want) > unit/2*(1+1e-9) ||
					strings.HasPrefix(id, "headline-memory") && math.Abs(end-want) > 1e-6 {
					s.Errorf("%s: %s: the bar %q ends at %v", s.where, id, label, end)
				}
			}
		}
	}
}

// document holds the sizes of a result's JSON, and that the page has the same.
func (s *sums) document(text string) {
	s.Helper()
	var d struct {
		Cells []struct {
			Breakdown *struct {
				Components []struct {
					Name     string   `json:"name"`
					OfLaunch *float64 `json:"of_launch"`
				} `json:"components"`
			} `json:"memory_breakdown"`
			Prediction *struct {
				Parts []struct {
					Name     string   `json:"name"`
					Measured *float64 `json:"measured"`
				} `json:"parts"`
			} `json:"forecast"`
		} `json:"cells"`
	}
	check.Err(s, json.Unmarshal([]byte(text), &d))
	for _, c := range d.Cells {
		if c.Breakdown == nil {
			continue
		}
		size, sum := map[string]float64{}, 0.0
		for _, p := range c.Breakdown.Components {
			if p.OfLaunch == nil {
				continue
			}
			if size[p.Name] = *p.OfLaunch; p.Name != "increase" && p.Name != "total" && p.Name != "kv_cache_used" {
				sum += *p.OfLaunch
			}
		}
		if _, known := size["framework_overhead"]; known {
			if s.wholes["of_launch"]++; math.Abs(sum-size["increase"]) > 1e-6 {
				s.Errorf("%s: of_launch comes to %v: %v", s.where, sum, size)
			}
		}
		if c.Prediction == nil {
			continue
		}
		for _, p := range c.Prediction.Parts {
			if p.Measured != nil && *p.Measured != size[p.Name] {
				s.Errorf("%s: %s is %v beside its prediction, and %v of the launch", s.where, p.Name, *p.Measured,
					size[p.Name])
			}
		}
	}
}

// profile holds the components of a memory profile.
func (s *sums) profile(text string) {
	s.Helper()
	var d struct {
		Breakdown map[string]any `json:"memory_breakdown"`
	}
	check.Err(s, json.Unmarshal([]byte(text), &d))
	sum := 0.0
	for _, name := range []string{"baseline", "model_weights", "kv_cache", "activations", "framework_overhead",
		"multi_gpu_overhead", "host_parts"} {
		v, _ := d.Breakdown[name+"_gb"].(float64)
		sum += v
	}
	whole, known := d.Breakdown["total_measured_gb"].(float64)
	if _, rest := d.Breakdown["framework_overhead_gb"]; !known || !rest {
		return
	}
	if s.wholes["profile"]++; math.Abs(sum-whole) > 1e-9 {
		s.Errorf("%s: the profile's components come to %v GiB, and not to %v", s.where, sum, whole)
	}
}

// In every table the parts that are shown add up to the whole that is shown, to the last digit, and every bar ends at
// its label.
func TestPartsAddUpToTheirWhole(t *testing.T) {
	t.Parallel()
	s := &sums{T: t, wholes: map[string]int{}}
	for seed := range uint64(48) {
		runs := randomRuns(t, rand.New(rand.NewPCG(seed, 1)))
		res := compare.Runs(runs...)
		page := pageOf(t, res, runs...)
		document := rendered(t, func(w io.Writer) error { return reports.Markdown(w, res) })
		for format, text := range map[string]string{"page": page,
			"Markdown": "<body>" + reportstest.AsHTML(t, document)} {
			s.where = fmt.Sprintf("seed %d, %s", seed, format)
			for _, rows := range tablesOf(t, text) {
				s.table(rows)
			}
		}
		s.bars(page)
		s.document(rendered(t, func(w io.Writer) error { return reports.ResultJSON(w, res) }))
		for i := range res.Cells {
			s.profile(rendered(t, func(w io.Writer) error { return reports.Profile(w, res, i+1) }))
		}
		s.terminal(document, rendered(t, func(w io.Writer) error { return reports.Details(w, res) }))
	}
	for _, whole := range []string{"peak", "increase", "baseline to peak", "growth of the browser itself",
		"WebGPU ledger", "bars of headline-memory", "bars of peaks", "bars of decode", "of_launch", "profile",
		"terminal"} {
		if s.wholes[whole] < 20 {
			t.Errorf("%d sums of %s are too few to know", s.wholes[whole], whole)
		}
	}
}

// terminal holds that the terminal's tables of parts have the sizes of Markdown's.
func (s *sums) terminal(document, terminal string) {
	s.Helper()
	for _, rows := range tablesOf(s.T, "<body>"+reportstest.AsHTML(s.T, document)) {
		for _, row := range rows {
			if row["MiB of"] == "" {
				continue
			}
			line := words(strings.Join([]string{row["cell"], row["launch"], row["MiB of"], row["baseline"],
				row["after warm-up"], row["peak"], row["increase"]}, " "))
			if s.wholes["terminal"]++; !strings.Contains(words(terminal), line) {
				s.Errorf("%s: the terminal lacks %q", s.where, line)
			}
		}
	}
}
