//go:build slow

package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/internal/cache"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/figure"
	"llmparity/internal/gguf"
)

// Both engines have the perplexity of llama-perplexity, which reads the same text and tokenises it itself.
func TestPerplexityIsThatOfLlamaPerplexity(t *testing.T) {
	for name, path := range map[string]string{"tiny": enginetest.Tiny(t, 1)[0].Model.Path, "smollm2": smolLM2(t).Path} {
		t.Run(name, func(t *testing.T) {
			want := llamaPerplexity(t, path, "../../internal/resolve/candle.txt", 4)
			cmd := program(t, "run", "--model", path, "--max-tokens", "2", "--repetitions", "1", "--timeout", "30m",
				"--quality", "builtin")
			well(t, cmd)
			cells := compare.Runs(opened(t, filepath.Join(cmd.Dir, "results", "latest"))).Cells
			for i := range cells {
				got := cells[i].Figure(figure.Perplexity).Center()
				t.Logf("%s: %.4f, llama-perplexity %.4f: %+.4f%%", cells[i].Label, got, want, 100*(got/want-1))
				if math.Abs(got/want-1) > 1e-3 {
					t.Errorf("%s: perplexity %g, llama-perplexity has %g", cells[i].Label, got, want)
				}
			}
		})
	}
}

// A gate of quality fails if one layer is damaged, and never with unchanged weights.
func TestGateOfQuality(t *testing.T) {
	const runs, windows = 10, 2 // runs with unchanged weights; windows of the text
	whole := smolLM2(t).Path
	text := put(t, t.TempDir(), "text.txt", readFile(t, "../../internal/resolve/candle.txt")[:2700])
	gate := func(path, baseline string) (said, dir string, code int) {
		cmd := program(t, "run", "plan.yaml")
		plan := "engines: [llamacpp]\nmodel: " + path + "\nprompts: [The clocks]\nmax_tokens: 2\n" +
			"context: 512\nrepetitions: 1\nwarmup: {launches: 0}\ntimeout: 30m\nquality: " + text + "\n"
		if baseline != "" {
			plan += "gate:\n  baseline: " + baseline + "\n  under_test: model\n  perplexity: {vs_baseline: +0.5%}\n" +
				"  kl_divergence: {vs_baseline: +0.001%}\n"
		}
		put(t, cmd.Dir, "plan.yaml", plan)
		stdout, stderr, code := output(t, cmd)
		return stdout + stderr, filepath.Join(cmd.Dir, "results", "latest"), code
	}
	said, baseline, code := gate(whole, "")
	if code != 0 {
		t.Fatalf("the baseline run: exit code %d\n%s", code, said)
	}
	for n := range runs {
		said, _, code := gate(whole, baseline)
		t.Logf("unchanged, run %d of %d: exit code %d", n+1, runs, code)
		if code != 0 {
			t.Fatal(said)
		}
	}
	better := llamaPerplexity(t, whole, text, windows)
	for _, c := range []struct {
		noise  float64
		raises float64 // the perplexity, at least
		fails  string
	}{{0.01, 0, "kl_divergence"}, {0.15, 0.01, "perplexity"}} {
		path := damaged(t, whole, c.noise)
		rise := llamaPerplexity(t, path, text, windows)/better - 1
		said, _, code := gate(path, baseline)
		t.Logf("noise of %g: llama-perplexity %+.3f%%\n%s", c.noise, 100*rise, said)
		if rise < c.raises {
			t.Errorf("noise of %g raises perplexity by %g, not %g", c.noise, rise, c.raises)
		}
		if code != fault.Gate.ExitCode() || !regexp.MustCompile(`FAIL.*`+c.fails).MatchString(said) {
			t.Errorf("noise of %g: exit code %d, and %s does not fail", c.noise, code, c.fails)
		}
	}
}

// damaged copies a model, and adds relative noise to the matrices of one layer.
func damaged(t *testing.T, path string, noise float64) string {
	t.Helper()
	f, err := gguf.Open(path)
	check(t, err)
	defer f.Close()
	text, err := os.ReadFile(path)
	check(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for _, tensor := range f.Tensors {
		if !strings.HasPrefix(tensor.Name, "blk.10.") || len(tensor.Shape) < 2 {
			continue
		}
		data := text[tensor.Offset:][:tensor.Size]
		for i := 0; i < len(data); i += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
			v *= float32(1 + noise*random.NormFloat64())
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(v))
		}
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	check(t, os.WriteFile(out, text, 0o644))
	return out
}

// llamaPerplexity returns what llama-perplexity prints for the first windows of a text.
func llamaPerplexity(t *testing.T, path, text string, windows int) float64 {
	t.Helper()
	program := filepath.Join(cache.Dir(os.Getenv), "llamacpp-test", "current", "bin", "llama-perplexity")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; run scripts/setup llamacpp-test", err)
	}
	out, err := exec.Command(program, "-m", path, "-f", text, "-c", "256", "-b", "256",
		"--chunks", strconv.Itoa(windows), "-ctk", "f32", "-ctv", "f32", "-fa", "off").CombinedOutput()
	check(t, err)
	found := regexp.MustCompile(`PPL = ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("no perplexity in\n%s", out)
	}
	v, err := strconv.ParseFloat(string(found[1]), 64)
	check(t, err)
	return v
}
