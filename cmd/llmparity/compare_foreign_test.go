package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"llmparity/browser"
	"llmparity/compare/comparetest"
)

// A run and a CSV file of another program make a table and a page whose charts a browser draws.
func TestCompareRunWithMemoryLog(t *testing.T) {
	root := t.TempDir()
	run := comparetest.Write(t, root, "mine", comparetest.Native(2))
	rows := filepath.Join("..", "..", "internal", "foreign", "testdata", "profiler.csv")
	html := filepath.Join(root, "beside.html")
	out := good(t, "compare", "--details", run, rows, "--html", html)
	mentions(t, out, "llama.cpp", "ollama-run1", "webllm-run1", "RSS sum", "1536", "JavaScript heap",
		"96.5", "was written by another program or by watch", "profiler.csv")
	text := readFile(t, html)
	sheet, err := browser.OpenSheet(t.Context(), "")
	check(t, err)
	defer func() {
		if err := sheet.Close(); err != nil {
			t.Error(err)
		}
	}()
	page, err := json.Marshal(text)
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
