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

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/program"
)

// smolLM2 is the real model that scripts/setup downloads.
func smolLM2(b testing.TB, context int) models.Model {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join(cache.Dir(os.Getenv), "models", "smollm2", "*.gguf"))
	if err != nil || len(paths) != 1 {
		b.Fatalf("SmolLM2 is not in the cache (%v); run `scripts/setup smollm2`", err)
	}
	return models.Model{Path: paths[0], Model: record.Model{Name: "smollm2", Format: "gguf", Context: context}}
}

// speed of one request in tokens/s
type speed struct{ prefill, decode float64 }

func (s speed) over(o speed) speed { return speed{s.prefill / o.prefill, s.decode / o.decode} }

// Settings of both sides. The prompt fits in one batch; llama-bench has no f32 KV cache.
const (
	benchThreads = 1
	benchBatch   = 512
	benchTokens  = 65 // 64 evaluations behind the prompt
	// llama-bench uses the smallest context. Without flash attention the context is the stride of the values in
	// memory, and a larger one costs about 4% of decode.
	benchContext = 256
	// the best of this many counts, on both sides: other load can only slow one down
	benchBest = 3
)

func benchConfig() Config {
	return Config{Cache: cache.Dir(os.Getenv), Threads: benchThreads, Batch: benchBatch, UBatch: benchBatch,
		KVType: "f16"}
}

// benchPrompt has about 150 tokens, and its continuation does not end early.
func benchPrompt() string {
	return strings.Repeat("Once upon a time, in a village by the sea, there lived a clockmaker who had never been late. ", 6) +
		"One morning the great clock of the tower stopped, and"
}

func (s speed) best(o speed) speed { return speed{max(s.prefill, o.prefill), max(s.decode, o.decode)} }

// best returns the best of several requests; own has, for each request, the ratio to what the server reports.
func best(b *testing.B, s *session) (ours speed, own []speed, prompt int) {
	for range benchBest {
		o, itself, n := measured(b, s)
		ours, own, prompt = ours.best(o), append(own, o.over(itself)), n
	}
	return ours, own, prompt
}

// launched returns the best request of a new server after a warm-up. Each pair gets a new server, as it gets a new
// llama-bench: where a process's buffers are in memory affects speed more than anything else here, and never changes.
func launched(b *testing.B, m models.Model) (ours speed, own []speed, prompt int) {
	b.Helper()
	s, _ := opened(b, New(benchConfig()))
	defer s.Close()
	check.Err(b, s.Load(b.Context(), m))
	measured(b, s)
	return best(b, s)
}

// measured runs a request and returns its speed as the client sees it and as the server reports it.
func measured(b *testing.B, s *session) (ours, own speed, prompt int) {
	b.Helper()
	var first, last time.Time
	u, err := s.Generate(b.Context(), engine.Request{Prompt: benchPrompt(), MaxTokens: benchTokens, IgnoreEOS: true},
		func(t record.Token) {
			if last = t.At; t.Index == 0 {
				first = t.At
			}
		})
	check.Err(b, err)
	if n := u.Reported["prompt_n"]; u.CachedTokens != 0 || int(n) != len(u.PromptIDs) ||
		int(u.Reported["predicted_n"]) != benchTokens {
		b.Fatalf("%d tokens cached, %v of %d evaluated, %v generated", u.CachedTokens, n, len(u.PromptIDs),
			u.Reported["predicted_n"])
	}
	prompt = len(u.PromptIDs)
	ours = speed{float64(prompt) / first.Sub(u.Sent).Seconds(), (benchTokens - 1) / last.Sub(first).Seconds()}
	return ours, speed{u.Reported["prompt_per_second"], u.Reported["predicted_per_second"]}, prompt
}

// llamaBench does the same work in llama-bench: a prompt of the same length, then the same number of single tokens
// after it.
func llamaBench(b *testing.B, path string, m models.Model, prompt int) speed {
	b.Helper()
	run := func(args ...string) float64 {
		c := benchConfig()
		args = append(args, "-m", m.Path, "-r", strconv.Itoa(benchBest), "-o", "json", "-t", strconv.Itoa(c.threads()),
			"-b", strconv.Itoa(c.Batch), "-ub", strconv.Itoa(c.UBatch),
			"-fa", c.flashAttention(), "-ctk", c.cacheK(), "-ctv", c.cacheV(), "-ngl", "0", "-dev", "none", "--offline")
		cmd := exec.CommandContext(b.Context(), path, args...)
		cmd.Env = Config{}.environment("")
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

// BenchmarkAgainstLlamaBench compares our speeds with the server's own timings of the same requests, and with
// llama-bench at the same settings, in alternating pairs. The order-statistic interval of the median ratio must be
// within bounds.
func BenchmarkAgainstLlamaBench(b *testing.B) {
	const pairs = 12
	path, err := program.Program{Names: []string{"llama-bench"}, Build: "llamacpp/current/bin",
		Do: "run scripts/setup llamacpp-tools"}.Find("", cache.Dir(os.Getenv))
	check.Err(b, err)
	m := smolLM2(b, benchContext)
	_, _, prompt := launched(b, m)
	var toOwn, toBench []speed
	for i := range pairs {
		var ours, bench speed
		var own []speed
		for turn := range 2 {
			if (i+turn)%2 == 0 { // alternate
				ours, own, _ = launched(b, m)
			} else {
				bench = llamaBench(b, path, m, prompt)
			}
		}
		b.Logf("pair %d, prefill and decode in tokens/s: ours %.2f %.2f, llama-bench's %.2f %.2f", i+1,
			ours.prefill, ours.decode, bench.prefill, bench.decode)
		toOwn, toBench = append(toOwn, own...), append(toBench, ours.over(bench))
	}
	b.ReportMetric(0, "ns/op") // meaningless here
	prefill, decode := func(s speed) float64 { return s.prefill }, func(s speed) float64 { return s.decode }
	held(b, "decode/own", toOwn, decode, .99, 1.01)
	held(b, "prefill/own", toOwn, prefill, .99, 1.01)
	held(b, "decode/llama-bench", toBench, decode, .93, 1.07)
	held(b, "prefill/llama-bench", toBench, prefill, .93, 1.07)
}

// held fails if the interval of a ratio's median is not within bounds.
func held(b *testing.B, name string, pairs []speed, of func(speed) float64, low, high float64) {
	b.Helper()
	var ratios []float64
	for _, p := range pairs {
		ratios = append(ratios, of(p))
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), 0.95)
	b.ReportMetric(s.Center, name)
	b.Logf("%s: %.4f (95%% CI %.4f to %.4f)", name, s.Center, s.Lo, s.Hi)
	if s.Lo < low || s.Hi > high {
		b.Errorf("%s: %.4f (95%% CI %.4f to %.4f) is not within %g to %g", name, s.Center, s.Lo, s.Hi, low, high)
	}
}
