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
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
)

// Both engines have the perplexity of llama-perplexity, which reads the same text and tokenises it itself: the whole
// text, and the text from its 129th token on. Of the tiny model it prints none, because its sums overflow.
func TestPerplexityIsThatOfLlamaPerplexity(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		bytes int
	}{"smollm2": {smolLM2(t).Path, 3300}} {
		t.Run(name, func(t *testing.T) {
			text := readFile(t, "../../internal/bench/resolve/essays.txt")[:c.bytes]
			whole := put(t, t.TempDir(), "text.txt", text)
			rest := put(t, t.TempDir(), "rest.txt", behind(t, c.path, text))
			a, windowsA := llamaPerplexity(t, c.path, whole, -1)
			b, windowsB := llamaPerplexity(t, c.path, rest, -1)
			nll := float64(windowsA)*math.Log(a) + float64(windowsB)*math.Log(b)
			want := math.Exp(nll / float64(windowsA+windowsB))
			cmd := program(t, "run", "--model", c.path, "--max-tokens", "2", "--repetitions", "1", "--timeout", "30m",
				"--quality", whole)
			well(t, cmd)
			for _, cell := range compare.Runs(opened(t, filepath.Join(cmd.Dir, "results", "latest"))).Cells {
				got := cell.Figure(figure.Perplexity).Center()
				t.Logf("%s, %d windows: %.4f, llama-perplexity %.4f: %+.4f%%", cell.Label, cell.Quality.Of, got, want,
					100*(got/want-1))
				if cell.Quality.Of != windowsA+windowsB {
					t.Errorf("%d windows, llama-perplexity has %d and %d", cell.Quality.Of, windowsA, windowsB)
				}
				if cell.Quality.Absent == 0 && math.Abs(got/want-1) > 1e-3 {
					t.Errorf("%s: perplexity %g, llama-perplexity has %g", cell.Label, got, want)
				}
			}
		})
	}
}

// behind is a text from its 129th token on; with a model that begins each text with a token, from the 130th, which
// stands behind the token that replaces the 129th.
func behind(t *testing.T, path, text string) string {
	t.Helper()
	m, err := models.Open(t.Context(), path, 512)
	check(t, err)
	tokens, err := models.Tokenizer(m)
	check(t, err)
	ids, first := tokens.Prompt(text), 0
	if tokens.AddBOS {
		first = 1
	}
	from := 128 + first
	for at := range text {
		head, tail := tokens.Prompt(text[:at]), tokens.Prompt(text[at:])
		if slices.Equal(head, ids[:from]) && slices.Equal(tail[first:], ids[from:]) {
			return text[at:]
		}
	}
	t.Fatal("the text cannot be cut there")
	return ""
}

// A gate of quality fails if one layer is damaged, and never with unchanged weights.
func TestGateOfQuality(t *testing.T) {
	const runs, windows = 10, 2 // runs with unchanged weights; windows of the text
	whole := smolLM2(t).Path
	text := put(t, t.TempDir(), "text.txt", readFile(t, "../../internal/bench/resolve/essays.txt")[:2700])
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
	better, _ := llamaPerplexity(t, whole, text, windows)
	for _, c := range []struct {
		noise  float64
		raises float64 // the perplexity, at least
		fails  string
	}{{0.01, 0, "kl_divergence"}, {0.15, 0.01, "perplexity"}} {
		path := damaged(t, whole, c.noise)
		worse, _ := llamaPerplexity(t, path, text, windows)
		rise := worse/better - 1
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

// llamaPerplexity returns what llama-perplexity prints for the first windows of a text, -1: all, and their number.
func llamaPerplexity(t *testing.T, path, text string, windows int) (ppl float64, scored int) {
	t.Helper()
	program := filepath.Join(cache.Dir(os.Getenv), "llamacpp", "current", "bin", "llama-perplexity")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; run scripts/setup llamacpp-test", err)
	}
	out, err := exec.Command(program, "-m", path, "-f", text, "-c", "256", "-b", "256",
		"--chunks", strconv.Itoa(windows), "-ctk", "f32", "-ctv", "f32", "-fa", "off").CombinedOutput()
	check(t, err)
	found := regexp.MustCompile(`PPL = ([0-9.]+)`).FindSubmatch(out)
	each := regexp.MustCompile(`\[(\d+)\][0-9.]+,`).FindAllSubmatch(out, -1)
	if found == nil || each == nil {
		t.Fatalf("no perplexity in\n%s", out)
	}
	ppl, err = strconv.ParseFloat(string(found[1]), 64)
	check(t, err)
	return ppl, len(each)
}
