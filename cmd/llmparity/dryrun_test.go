package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/bench/dryrun"
	"llmparity/internal/kit/fault"
)

// wouldRun is what a dry run prints as JSON.
type wouldRun struct {
	Planned []struct {
		Engine, Missing, Unknown string
		MemoryB                  int64 `json:"memory_bytes"`
	} `json:"cells_planned"`
	dryrun.Summary
}

// A dry run lists each cell and what is missing, launches nothing, ends as the run would, and prints the same as JSON.
func TestDryRun(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "plan.yaml", "--dry-run")
	put(t, cmd.Dir, "plan.yaml", "name: big\nengines: [webllm, llamacpp]\ninput_lengths: [2, 3]\noutput_lengths: [2, 3]\n"+
		"concurrency: [1, 4]\nwarmup: {launches: 0, tokens: 4}\nrepetitions: 3\ntimeout: 3m\nmodels:\n  - tiny\n"+
		"  - {model: nowhere.gguf, input_lengths: [8]}\n"+
		"  - {model: tiny, tensor_parallel_size: 4, quantization: awq, input_lengths: [8]}\n")
	_, stderr := ends(t, cmd, fault.BadModel, "32 cells, 6 start settings. Nothing was launched.", "nowhere.gguf",
		"tensor_parallel_size: 4", "quantization: awq", "cannot run here",
		"webllm serves 1 request at a time", "Time: unknown", "Memory: ")
	if !strings.HasPrefix(stderr, "llmparity: bad-model: cannot open nowhere.gguf: ") || strings.Count(stderr, "\n") > 1 {
		t.Error(stderr)
	}
	if there(filepath.Join(cmd.Dir, "results")) {
		t.Error("a dry run left a record")
	}
	stdout, _ := ends(t, resumed(cmd, "run", "plan.yaml", "--dry-run", "--json"), fault.BadModel)
	doc := decoded[wouldRun](t, stdout)
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

// Before the first launch, a run says that one takes minutes on a software adapter, and names a limit that suffices.
func TestSlowLaunchIsAnnounced(t *testing.T) {
	if !browser.Auto.Software() {
		t.Skip("WebGPU has a GPU here")
	}
	t.Chdir(t.TempDir())
	run := func(args ...string) string {
		return good(t, append([]string{"run", "--engines", "webllm", "--dry-run", "--concurrency", "1"}, args...)...)
	}
	mentions(t, run("--requests", "2000", "--timeout", "2m"), "webllm: WebGPU runs on the CPU. With 1.6 MiB of weights and ",
		" min (predicted); the time limit is 2m: use --timeout ")
	if out := run("--requests", "2"); strings.Contains(out, "WebGPU runs on the CPU. With") {
		t.Errorf("a short launch is announced:\n%s", out)
	}
}

// A dry run predicts the memory of a catalogue model that is not downloaded.
func TestDryRunOfCatalogueModel(t *testing.T) {
	t.Parallel()
	const id = "Llama-3.2-1B-Instruct-q4f32_1-MLC"
	cmd := program(t, "run", "plan.yaml", "--dry-run")
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+filepath.Join(cmd.Dir, "cache"))
	put(t, cmd.Dir, "plan.yaml", "name: fetched\nengines: [webllm]\nmodel: "+id+"\nadapter: swiftshader\nmax_tokens: 8\n"+
		"input_lengths: [8]\nwarmup: {launches: 0, tokens: 4}\nrepetitions: 1\ntimeout: 3m\n")
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
