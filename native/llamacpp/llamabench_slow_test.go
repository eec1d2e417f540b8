//go:build slow

package llamacpp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// smolLM2 is the real model that the set-up fetches.
func smolLM2(b testing.TB, context int) engine.Model {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join(cache.Dir(os.Getenv), "models", "smollm2", "*.gguf"))
	if err != nil || len(paths) != 1 {
		b.Fatalf("SmolLM2 is not in the cache (%v); run `scripts/setup smollm2`", err)
	}
	return engine.Model{Path: paths[0], Model: record.Model{Name: "smollm2", Format: "gguf", Context: context}}
}

// speed is of one request, in tokens/s.
type speed struct{ prefill, decode float64 }

func (s speed) over(o speed) speed { return speed{s.prefill / o.prefill, s.decode / o.decode} }

// What both sides compute with. The batch holds the prompt; llama-bench has no cache of f32.
const (
	benchThreads = 1
	benchBatch   = 512
	benchTokens  = 65 // 64 evaluations behind the prompt
	// llama-bench makes its own just as large as prompt and tokens are. Without flash attention values lie in memory a
	// context apart, and a larger one costs some 4 % of decode.
	benchContext = 256
	// of so many in a row the best counts, on both sides: what else runs on the machine only ever slows one down
	benchBest = 3
)

func benchConfig() Config {
	return Config{Cache: cache.Dir(os.Getenv), Threads: benchThreads, Batch: benchBatch, UBatch: benchBatch,
		KVType: "f16"}
}

// benchPrompt has some 150 tokens; what follows them does not end early.
func benchPrompt() string {
	return strings.Repeat("Once upon a time, in a village by the sea, there lived a clockmaker who had never been late. ", 6) +
		"One morning the great clock of the tower stopped, and"
}

func (s speed) best(o speed) speed { return speed{max(s.prefill, o.prefill), max(s.decode, o.decode)} }

// best is the best of several requests of ours; own are ratios, of each request, to what the server says of it.
func best(b *testing.B, s *session) (ours speed, own []speed, prompt int) {
	for range benchBest {
		o, itself, n := measured(b, s)
		ours, own, prompt = ours.best(o), append(own, o.over(itself)), n
	}
	return ours, own, prompt
}

// launched is the best of a server's requests behind one that warms it. Each pair has a server of its own, as it has a
// llama-bench: where a process's buffers come to lie decides over more of its speed than anything else here, and stays
// for its life.
func launched(b *testing.B, m engine.Model) (ours speed, own []speed, prompt int) {
	b.Helper()
	s, _ := opened(b, New(benchConfig()))
	defer s.Close()
	if err := s.Load(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	measured(b, s)
	return best(b, s)
}

// measured is a request of ours: as the client sees it, and as the server says itself.
func measured(b *testing.B, s *session) (ours, own speed, prompt int) {
	b.Helper()
	var first, last time.Time
	u, err := s.Generate(b.Context(), engine.Request{Prompt: benchPrompt(), MaxTokens: benchTokens, IgnoreEOS: true},
		func(t record.Token) {
			if last = t.At; t.Index == 0 {
				first = t.At
			}
		})
	if err != nil {
		b.Fatal(err)
	}
	if n := u.Reported["prompt_n"]; u.CachedTokens != 0 || int(n) != len(u.PromptIDs) ||
		int(u.Reported["predicted_n"]) != benchTokens {
		b.Fatalf("%d tokens from a cache, %v of %d evaluated, %v generated", u.CachedTokens, n, len(u.PromptIDs),
			u.Reported["predicted_n"])
	}
	prompt = len(u.PromptIDs)
	ours = speed{float64(prompt) / first.Sub(u.Sent).Seconds(), (benchTokens - 1) / last.Sub(first).Seconds()}
	return ours, speed{u.Reported["prompt_per_second"], u.Reported["predicted_per_second"]}, prompt
}

// llamaBench is the same work in llama-bench: a prompt of that length; as many evaluations of one token each, behind as
// long a prompt.
func llamaBench(b *testing.B, path string, m engine.Model, prompt int) speed {
	b.Helper()
	run := func(args ...string) float64 {
		c := benchConfig()
		args = append(args, "-m", m.Path, "-r", strconv.Itoa(benchBest), "-o", "json", "-t", strconv.Itoa(c.threads()),
			"-b", strconv.Itoa(c.Batch), "-ub", strconv.Itoa(c.UBatch),
			"-fa", c.flashAttention(), "-ctk", c.cacheK(), "-ctv", c.cacheV(), "-ngl", "0", "-dev", "none", "--offline")
		cmd := exec.CommandContext(b.Context(), path, args...)
		cmd.Env = environment("")
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%s: %v", cmd, err)
		}
		var results []struct {
			Speeds []float64 `json:"samples_ts"`
		}
		if err := json.Unmarshal(out, &results); err != nil || len(results) != 1 ||
			len(results[0].Speeds) != benchBest {
			b.Fatalf("%v: %s", err, out)
		}
		return slices.Max(results[0].Speeds)
	}
	return speed{
		prefill: run("-p", strconv.Itoa(prompt), "-n", "0"),
		decode:  run("-p", "0", "-n", strconv.Itoa(benchTokens-1), "-d", strconv.Itoa(prompt)),
	}
}

// BenchmarkAgainstLlamaBench holds the speeds that we report against the server's own timings of the same requests, and
// against llama-bench with the same threads, batch, attention and cache, in turn, pair by pair. What is held is the
// interval of the median of the pairs' ratios, that of order statistics; no pair is left out.
func BenchmarkAgainstLlamaBench(b *testing.B) {
	const pairs = 12
	path, err := llamaProgram([]string{"llama-bench"}, "PATH", "LLMPARITY_LLAMA_BENCH",
		"scripts/setup llamacpp-tools").Find("", cache.Dir(os.Getenv))
	if err != nil {
		b.Fatal(err)
	}
	m := smolLM2(b, benchContext)
	_, _, prompt := launched(b, m)
	var toOwn, toBench []speed
	for i := range pairs {
		var ours, bench speed
		var own []speed
		for turn := range 2 {
			if (i+turn)%2 == 0 { // by turns first
				ours, own, _ = launched(b, m)
			} else {
				bench = llamaBench(b, path, m, prompt)
			}
		}
		b.Logf("pair %d, prefill and decode in tokens/s: ours %.2f %.2f, llama-bench's %.2f %.2f", i+1,
			ours.prefill, ours.decode, bench.prefill, bench.decode)
		toOwn, toBench = append(toOwn, own...), append(toBench, ours.over(bench))
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	prefill, decode := func(s speed) float64 { return s.prefill }, func(s speed) float64 { return s.decode }
	held(b, "decode/own", toOwn, decode, .99, 1.01)
	held(b, "prefill/own", toOwn, prefill, .99, 1.01)
	held(b, "decode/llama-bench", toBench, decode, .93, 1.07)
	held(b, "prefill/llama-bench", toBench, prefill, .93, 1.07)
}

// held fails where the interval of a ratio's median lies not within bounds.
func held(b *testing.B, name string, pairs []speed, of func(speed) float64, low, high float64) {
	b.Helper()
	var ratios []float64
	for _, p := range pairs {
		ratios = append(ratios, of(p))
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), 0.95)
	b.ReportMetric(s.Center, name)
	b.Logf("%s: %.4f (95 %%: %.4f to %.4f)", name, s.Center, s.Lo, s.Hi)
	if s.Lo < low || s.Hi > high {
		b.Errorf("%s: %.4f (95 %%: %.4f to %.4f), which is not within %g to %g", name, s.Center, s.Lo, s.Hi, low, high)
	}
}
