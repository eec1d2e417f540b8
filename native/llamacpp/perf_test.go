package llamacpp

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Figures have the same names whichever version printed them. The files are output of real programs.
func TestPerf(t *testing.T) {
	for name, want := range map[string]map[string]float64{
		"common_perf_print.txt": {"sampling_ms": 2.15, "samplers_ms": .72, "samplers_tokens": 20, "load_ms": 139.16,
			"prompt_eval_ms": 32.78, "prompt_eval_tokens": 4,
			"eval_ms": 206.24, "eval_runs": 15, "prompt_eval_tokens_per_second": 4 / 32.78e-3,
			"eval_tokens_per_second": 15 / 206.24e-3},
		// A run without timings: rates would be infinite and are omitted.
		"llama_perf_context_print.txt": {"load_ms": 62, "prompt_eval_ms": 0, "prompt_eval_tokens": 16, "eval_ms": 0,
			"eval_runs": 17},
		"llama_print_timings.txt": {"load_ms": 398.02, "sample_ms": 30.98, "sample_runs": 64, "prompt_eval_ms": 919.46,
			"prompt_eval_tokens": 8,
			"eval_ms":            9616.37, "eval_runs": 63, "prompt_eval_tokens_per_second": 8 / 919.46e-3,
			"eval_tokens_per_second": 63 / 9616.37e-3},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "perf", name))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			r := newLogReader(func(line string) { perf(line, got) })
			_, _ = r.Write(text) // never fails
			rates(got)
			if !maps.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
				t.Errorf("%v\nwant %v", got, want)
			}
		})
	}
}

// entire feeds chunks of output to pieces and returns the pieces of text.
func entire(chunks []string, mark string, byModel bool) (text []string, over bool) {
	p := newPieces(context.Background(), mark, func(piece string, _ time.Time) { text = append(text, piece) })
	for _, c := range chunks {
		_, _ = p.Write([]byte(c)) // never fails
	}
	p.end(byModel)
	return text, !p.at.IsZero()
}

func TestPieces(t *testing.T) {
	const mark = "<f00>"
	for _, c := range []struct {
		name    string
		in      string // chunks, separated by bars
		byModel bool
		want    string
		over    bool
	}{
		{"one chunk per piece", "a| b|c|<f00>", false, "a| b|c", true},
		{"the mark with the last piece", "a| b<f00>", false, "a| b", true},
		{"the mark in several chunks", "a|<f|0|0>", false, "a", true},
		{"text like the begin of the mark", "a|<|f01>|b|<f00>", false, "a|<|f01>|b", true},
		{"newlines of the text", "a\n|\n|<f00>", false, "a\n|\n", true},
		{"newline of the program", "a|\n<f00>", true, "a", true},
		{"one newline of each", "a\n|\n|<f00>", true, "a\n", true},
		{"output after the mark", "a|<f00>|\nInterrupted by user\n", false, "a", true},
		{"incomplete", "a|b\n", false, "a|b\n", false},
		{"incomplete, perhaps in the mark", "a|<f0", false, "a|<f0", false},
		{"nothing", "<f00>", false, "", true},
	} {
		got, over := entire(strings.Split(c.in, "|"), mark, c.byModel)
		if strings.Join(got, "|") != c.want || over != c.over {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, over, c.want, c.over)
		}
	}
}
