//go:build slow

package llamacpp

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/prompts"
	"llmparity/internal/record"
	"llmparity/internal/tokenizer"
	"llmparity/internal/traffic"
)

// maker makes prompts by a model's own vocabulary.
func maker(b testing.TB, m engine.Model) *prompts.Maker {
	b.Helper()
	tokens, err := tokenizer.Open(m.Path)
	if err != nil {
		b.Fatal(err)
	}
	texts, err := prompts.NewMaker(tokens)
	if err != nil {
		b.Fatal(err)
	}
	return texts
}

// BenchmarkClients tells what a server of SmolLM2 with four slots does for one, two and four clients of a closed loop,
// each with fresh prompts of 16 tokens and 16 to generate, and that it counts each prompt as it was asked for.
func BenchmarkClients(b *testing.B) {
	const input, output, each = 16, 16, 4
	m := smolLM2(b, 256)
	texts := maker(b, m)
	_, s, _ := loadedWith(b, Config{Slots: 4}, m)
	seed := uint64(0)
	for _, clients := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			for b.Loop() {
				plan, err := traffic.New(
					record.Traffic{Loop: record.ClosedLoop, Concurrency: clients, Requests: clients * each})
				if err != nil {
					b.Fatal(err)
				}
				var mu sync.Mutex
				var ttft time.Duration
				tokens := 0
				begin := time.Now()
				report := traffic.Drive(b.Context(), plan, 4,
					func(ctx context.Context, r traffic.Request) (string, error) {
						mu.Lock()
						seed++
						prompt, err := texts.OfLength(input, seed)
						mu.Unlock()
						if err != nil {
							return "", err
						}
						u, err := s.Generate(ctx, engine.Request{Prompt: prompt, MaxTokens: output, IgnoreEOS: true},
							func(t record.Token) {
								mu.Lock()
								defer mu.Unlock()
								tokens++
								if t.Index == 0 {
									ttft += t.At.Sub(r.Due)
								}
							})
						if err == nil && (len(u.PromptIDs) != input || u.CachedTokens != 0) {
							err = fmt.Errorf("%d tokens of a prompt of %d, %d of them from a cache", len(u.PromptIDs),
								input, u.CachedTokens)
						}
						return "", err
					})
				if err := report.Err(); err != nil {
					b.Fatal(err)
				}
				l := report.Lateness()
				b.ReportMetric(float64(tokens)/time.Since(begin).Seconds(), "tokens/s")
				b.ReportMetric(ttft.Seconds()*1e3/float64(clients*each), "ttft-ms")
				b.ReportMetric(float64(l.P99.Nanoseconds())/1e3, "p99-late-µs")
			}
		})
	}
}

// The server counts what was asked for, also of a long one.
func TestPromptsAreAsLongAsAskedFor(t *testing.T) {
	m := smolLM2(t, 4096)
	texts := maker(t, m)
	_, s, _ := loadedWith(t, Config{PromptCache: true}, m)
	for seed, n := range []int{1, 2, 17, 256, 1000, 3000} {
		prompt, err := texts.OfLength(n, uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: 1, IgnoreEOS: true},
			func(record.Token) {})
		if err != nil || len(u.PromptIDs) != n || u.CachedTokens != 0 {
			t.Errorf("%d tokens were asked for; the server counts %d and has %d in its cache: %v", n, len(u.PromptIDs),
				u.CachedTokens, err)
		}
	}
}
