package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"llmparity/browser/chrome"
	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

func TestCompareUsesFirstRunAsBaseline(t *testing.T) {
	lightTest(t)
	root := t.TempDir()
	a := comparetest.Native(8)
	b := a
	b.Token += 300 * time.Microsecond
	other := comparetest.Native(8)
	other.Cell.ID, other.Cell.PromptID, other.Cell.Prompt = 7, 2, "There was"
	before, after := comparetest.Write(t, root, "before", a, other), comparetest.Write(t, root, "after", b, other)
	run := func(args ...string) string {
		t.Helper()
		return good(t, append([]string{"compare", before, after}, args...)...)
	}
	mentions(t, run("--details", "--by", "engine,input_len"), "\nafter compared with before, the baseline run\n", "\nGroups of cells\n", "over prompt (2)",
		" different\n", " no difference\n")
	res := decoded[compare.Result](t, run("--json", "--min-effect", "50"))
	if res.Statistics.MinEffect != 0.5 || len(res.Groups) != 0 || len(res.Families) != 1 ||
		!res.Families[0].Runs {
		t.Fatalf("%+v", res)
	}
	for _, x := range res.Comparisons[0].Ratios {
		if decode := x.Figure == figure.DecodeTPS; decode &&
			(x.Call != stats.TooSmall || x.Delta >= 0 || *x.Ratio <= 1) || !decode && x.Call != stats.Chance {
			t.Errorf("%+v", x)
		}
	}
	if res = decoded[compare.Result](t, run("--json", "--by", "")); len(res.Groups) != 2 ||
		res.Groups[0].Name != "all cells" {
		t.Errorf("%+v", res.Groups)
	}
}

// memoryLog is a CSV file of another program.
const memoryLog = "../../internal/record/foreign/testdata/profiler.csv"

// A run and a CSV file of another program make a table and a page whose charts a browser draws.
func TestCompareRunWithMemoryLog(t *testing.T) {
	browserTest(t)
	root := t.TempDir()
	run := comparetest.Write(t, root, "mine", comparetest.Native(2))
	html := filepath.Join(root, "beside.html")
	mentions(t, good(t, "compare", "--details", run, memoryLog, "--html", html), "llama.cpp", "ollama-run1",
		"webllm-run1", "RSS sum", "1536", "JavaScript heap",
		"96.5", "was written by another program or by watch", "profiler.csv")
	sheet, err := chrome.OpenSheet(t.Context(), "")
	check(t, err)
	defer func() { check(t, sheet.Close()) }()
	page, err := json.Marshal(readFile(t, html))
	check(t, err)
	got, err := sheet.Run(t.Context(), `(async () => {
		const frame = document.createElement("iframe");
		frame.width = 1200; frame.height = 900;
		const loaded = new Promise((done) => { frame.onload = done; });
		frame.srcdoc = `+string(page)+`;
		document.body.append(frame);
		await loaded;
		const doc = frame.contentDocument, out = [];
		for (const figure of doc.querySelectorAll('[data-chart^="memory-"]')) {
			for (let n = 0; n < 600 && !figure.querySelector(".plot svg path"); n++) {
				figure.scrollIntoView();
				await new Promise((done) => setTimeout(done, 50));
			}
			out.push(figure.dataset.chart + ":" + (figure.querySelectorAll(".plot svg path").length > 3));
		}
		return out.join(" ");
	})()`)
	if err != nil || got != "memory-0:true memory-1:true memory-2:true" {
		t.Errorf("the page shows %q, %v", got, err)
	}
}
