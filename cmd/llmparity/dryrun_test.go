package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/dryrun"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

// sweep is a plan of the tiny model with many lengths.
func sweep(inputs, outputs int, more string) string {
	list := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprint(2+i))
		}
		return strings.Join(out, ",")
	}
	return "name: big\nengines: [webllm, llamacpp]\nmodel: tiny\ninput_lengths: [" + list(inputs) +
		"]\noutput_lengths: [" + list(outputs) + "]\n" + more +
		"temperature: 0\nwarmup: {launches: 0, tokens: 4}\nrepetitions: 3\ntimeout: 3m\n"
}

// BenchmarkDryRun resolves plans of 10,000 cells, in at most 1 s: few setups with many shapes, and many with few.
func BenchmarkDryRun(b *testing.B) {
	for name, text := range map[string]string{
		"shapes": sweep(50, 10, "concurrency: [1, 2, 4, 8, 16]\ncontexts: [512, 1024]\n"),
		"setups": sweep(5, 5, "kv_cache_dtypes: [f32]\ncontexts: ["+
			strings.Trim(strings.Join(strings.Fields(fmt.Sprint(upTo(100))), ","), "[]")+"]\nconcurrency: [1, 2]\n"),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := plan.Parse([]byte(text), name, kinds.All...)
			check(b, err)
			_, cells, err := p.Count()
			if err != nil || cells != 10_000 {
				b.Fatalf("%d cells, %v", cells, err)
			}
			var most runtime.MemStats
			for b.Loop() {
				f := &runFlags{out: b.TempDir()}
				check(b, f.follow(p, func(string) bool { return false }))
				var out bytes.Buffer
				begin := time.Now()
				check(b, f.dry(b.Context(), p, &out))
				b.ReportMetric(time.Since(begin).Seconds(), "s/plan")
				runtime.ReadMemStats(&most)
				if n := bytes.Count(out.Bytes(), []byte("\n")); n < 10_000 {
					b.Fatalf("%d lines", n)
				}
			}
			b.ReportMetric(float64(most.Sys)/1e6, "MB")
		})
	}
}

// upTo returns n numbers from 16.
func upTo(n int) []int {
	var out []int
	for i := range n {
		out = append(out, 16+i)
	}
	return out
}

// A dry run lists each cell and what is missing, launches nothing, and prints the same as JSON.
func TestDryRun(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "plan.yaml", "--dry-run")
	text := sweep(2, 2, "concurrency: [1, 4]\n") +
		"models:\n  - model: tiny\n  - {model: nowhere.gguf, input_lengths: [8]}\n  - {model: tiny, tensor_parallel_size: 4, quantization: awq, input_lengths: [8]}\n"
	text = strings.Replace(text, "model: tiny\ninput", "input", 1)
	write := func(dir string) {
		put(t, dir, "plan.yaml", text)
	}
	write(cmd.Dir)
	stdout, stderr, code := output(t, cmd)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	mentions(t, stdout, "32 cells, 6 start settings. Nothing was launched.", "nowhere.gguf",
		"tensor_parallel_size: 4", "quantization: awq", "cannot run here",
		"webllm serves 1 request at a time", "Time: unknown", "Memory: ")
	if _, err := os.Stat(filepath.Join(cmd.Dir, "results")); err == nil {
		t.Error("a dry run left a record")
	}
	again := program(t, "run", "plan.yaml", "--dry-run", "--json")
	write(again.Dir)
	stdout, stderr, code = output(t, again)
	var doc struct {
		Planned []dryrun.Cell `json:"cells_planned"`
		dryrun.Summary
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	missing := 0
	for _, c := range doc.Planned {
		if c.Missing != "" {
			missing++
		} else if c.MemoryB == 0 {
			t.Errorf("no prediction: %+v", c)
		}
	}
	if len(doc.Planned) != 32 || doc.Cells != 32 || missing != 16 || doc.CantRun != 16 ||
		doc.Schema != dryrun.Schema {
		t.Errorf("%d cells, %d missing, %+v", len(doc.Planned), missing, doc.Summary)
	}
}

// A dry run predicts the memory of a catalogue model that is not downloaded.
func TestDryRunOfCatalogueModel(t *testing.T) {
	t.Parallel()
	const id = "Llama-3.2-1B-Instruct-q4f32_1-MLC"
	cmd := program(t, "run", "plan.yaml", "--dry-run")
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+filepath.Join(cmd.Dir, "cache"))
	text := "name: fetched\nengines: [webllm]\nmodel: " + id + "\nadapter: swiftshader\nmax_tokens: 8\n" +
		"prompts: [a]\ntemperature: 0\nwarmup: {launches: 0, tokens: 4}\nrepetitions: 1\ntimeout: 3m\n"
	put(t, cmd.Dir, "plan.yaml", text)
	stdout, _ := well(t, cmd)
	// The row's last columns are memory, which is 1128.82 MiB, the page and the browser, and time, which is not known.
	row := regexp.MustCompile(`(?m)^ *1 .* ([0-9.]+) GiB +\?$`).FindStringSubmatch(stdout)
	if row == nil {
		t.Fatalf("no memory in\n%s", stdout)
	}
	if gib, err := strconv.ParseFloat(row[1], 64); err != nil || gib < 1.5 || gib > 3 {
		t.Errorf("%s GiB (%v)", row[1], err)
	}
}
