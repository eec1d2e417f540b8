//go:build slow

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/record"
)

// BenchmarkConvert compares the conversion of SmolLM2's quantised GGUF with copying the same bytes, in one run.
func BenchmarkConvert(b *testing.B) {
	path, err := models.Path(models.SmolLM2)
	check(b, err)
	dir := b.TempDir()
	var converted, copied []time.Duration
	for b.Loop() {
		for _, name := range []string{"package", "copy"} {
			check(b, os.RemoveAll(filepath.Join(dir, name)))
		}
		converted = append(converted, timed(b, func() error {
			_, err := mlc.Write(b.Context(), path, filepath.Join(dir, "package"), mlc.Options{ContextWindow: 1024})
			return err
		}))
		copied = append(copied, timed(b, func() error {
			return exec.CommandContext(b.Context(), "cp", "-r", filepath.Join(dir, "package"),
				filepath.Join(dir, "copy")).Run()
		}))
	}
	b.ReportMetric(median(converted).Seconds(), "s/conversion")
	b.ReportMetric(median(converted).Seconds()/median(copied).Seconds(), "x-cp")
}

// BenchmarkDecode measures a decode step of SmolLM2 in WebLLM, with either sort in alternation.
func BenchmarkDecode(b *testing.B) {
	const n = 17
	m := smolLM2(b)
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	for _, sort := range []string{"partial", "full"} {
		b.Run(sort, func(b *testing.B) {
			session := load(b, ctx, webLLM(webllm.Config{Sort: sort}), m)
			var steps []time.Duration
			for b.Loop() {
				var last time.Time
				_, err := session.Generate(
					ctx, engine.Request{Prompt: "The capital of France is", MaxTokens: n, IgnoreEOS: true},
					func(t record.Token) {
						if !last.IsZero() {
							steps = append(steps, t.At.Sub(last))
						}
						last = t.At
					})
				check(b, err)
			}
			b.ReportMetric(float64(median(steps).Milliseconds()), "ms/step")
			check(b, session.Close())
		})
	}
}

func timed(b *testing.B, do func() error) time.Duration {
	b.Helper()
	began := time.Now()
	check(b, do())
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
