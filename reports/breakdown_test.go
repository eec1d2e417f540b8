package reports_test

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports"
)

func rendered(t *testing.T, render func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// columnsOf the terminal's table by the page's row.
var columnsOf = map[string]int{"WebGPU ledger": 2, "weights": 3, "KV cache, reserved": 4,
	"KV cache, filled (calculated)": 5, "workspaces": 6, "unattributed": 7,
	"JavaScript heap": 8, "array buffers": 9, "WebAssembly": 10, "total PSS": 11}

func TestBreakdownIsTheSameInTerminalAndPage(t *testing.T) {
	runs := ownCase(t, "inside")
	for _, m := range runs[0].Attempts[1].Metrics { // a launch of six without a figure, which both must say
		if i := slices.Index(runs[0].Attempts[1].Metrics, m); m.Name == "used_bytes" && m.Edge == record.Load {
			runs[0].Attempts[1].Metrics = slices.Delete(slices.Clone(runs[0].Attempts[1].Metrics), i, i+1)
			break
		}
	}
	res := compare.Runs(runs...)
	text := rendered(t, func(w io.Writer) error { return reports.Details(w, res) })
	page := rendered(t, func(w io.Writer) error { return colours.HTML(w, res, runs...) })
	terminal := map[[2]string][]string{} // by cell and moment
	_, section, _ := strings.Cut(text, "\nWhere the memory is\n")
	for _, l := range strings.Split(section, "\n") {
		if f := regexp.MustCompile(` {2,}`).Split(l, -1); len(f) == 12 {
			terminal[[2]string{f[0], f[1]}] = f
		}
	}
	_, parts, _ := strings.Cut(page, "<h3>Parts</h3>")
	parts, _, _ = strings.Cut(parts, "</table>")
	compared := 0
	for _, row := range strings.Split(parts, "<tr>")[2:] {
		var f []string
		for _, x := range regexp.MustCompile(`<t[hd][^>]*>(?:<bdi>)?(.*?)(?:</bdi>)?</t[hd]>`).FindAllStringSubmatch(
			row, -1) {
			f = append(f, html.UnescapeString(x[1]))
		}
		for i, moment := range []string{"load", "measure", "retained"} {
			want := strings.ReplaceAll(f[2+i], "–", "-")
			got, ok := terminal[[2]string{f[0], moment}]
			if !ok && want == "-" {
				continue
			}
			if !ok || got[columnsOf[f[1]]] != want {
				t.Errorf("%s of %s at %s: the page has %q, the terminal %q", f[1], f[0], moment, want, got)
			}
			compared++
		}
	}
	if compared < 30 || !strings.Contains(section, "(n=5)") {
		t.Errorf("%d figures compared in\n%s", compared, section)
	}
	for _, c := range res.Cells {
		for _, p := range c.Memory.Peaks {
			if f, _ := p.Highest(); !strings.Contains(page, ">"+p.Process+"</td>") ||
				!strings.Contains(strings.Join(strings.Fields(section), " "), p.Process+" ") || f.N != 6 {
				t.Errorf("%s: %+v", p.Process, f)
			}
		}
	}
	for _, method := range []string{"heap_usage", "webgpu_ledger", "wasm_memory"} {
		if !strings.Contains(page, "what "+method+" can&#39;t see") {
			t.Errorf("the page doesn't say what %s is blind to", method)
		}
	}
}

// Records of runs in which nothing looked inside, or at peaks by phase, give what they always gave.
func TestBreakdownIsAbsentWhereNothingLookedInside(t *testing.T) {
	runs := []*record.Run{comparetest.Run(t, "old", comparetest.Browser(6), comparetest.Native(6))}
	res := compare.Runs(runs...)
	if text := rendered(t, func(w io.Writer) error { return reports.Details(w, res) }); strings.Contains(
		text, "Where the memory is") {
		t.Errorf("nothing is known of it:\n%s", text)
	}
	if page := rendered(t, func(w io.Writer) error { return colours.HTML(w, res, runs...) }); strings.Contains(
		page, `id="breakdown"`) {
		t.Error("nothing is known of it")
	}
	if text := rendered(t, func(w io.Writer) error { return reports.JSON(w, res) }); strings.Contains(
		text, `"memory": {`) {
		t.Error("nothing is known of it")
	}
}

// Machines get the exact figures, with their methods.
func TestBreakdownInJSON(t *testing.T) {
	text := rendered(t, func(w io.Writer) error {
		return reports.JSON(
			w, compare.Runs(cases(t, "inside")["inside"]...))
	})
	var res struct {
		Cells []struct {
			Memory struct {
				Measure []struct {
					Name, Unit, Method, Blind string
					Median                    *float64
					Absent                    string
				}
				Peaks []struct{ Process string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &res); err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, f := range res.Cells[0].Memory.Measure {
		if f.Median == nil {
			if f.Absent == "" {
				t.Errorf("%s is absent without a reason", f.Name)
			}
			continue
		}
		figures[f.Name] = *f.Median
		if f.Unit != "MiB" || f.Method == "" || f.Name != figure.TotalPSS && f.Blind != "what "+f.Method+" can't see" {
			t.Errorf("%+v", f)
		}
	}
	in := comparetest.Page()
	if sum := figures["weights"] + figures["kv_reserved"] + figures["workspaces"] +
		figures["unattributed"]; sum != figures["webgpu_ledger"] || sum == 0 ||
		figures["weights"]*record.MiB != float64(in.Weights) {
		t.Errorf("%v", figures)
	}
	if len(res.Cells[1].Memory.Peaks) != 1 || res.Cells[1].Memory.Peaks[0].Process != "server" {
		t.Errorf("%+v", res.Cells[1].Memory.Peaks)
	}
}
