//go:build slow

package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// timedEngine measures the engine's own time, so that the rest is llmparity's.
type timedEngine struct {
	engine.Engine
	worked atomic.Int64 // nanoseconds
}

func (e *timedEngine) time() func() {
	begin := time.Now()
	return func() { e.worked.Add(int64(time.Since(begin))) }
}

func (e *timedEngine) Prepare(ctx context.Context, m models.Model, say func(string)) error {
	if p, ok := e.Engine.(engine.Preparer); ok {
		return p.Prepare(ctx, m, say)
	}
	return nil
}

func (e *timedEngine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	s, err := e.Engine.Open(ctx, p)
	return &timedSession{s, e}, err
}

type timedSession struct {
	engine.Session
	of *timedEngine
}

func (s *timedSession) Load(ctx context.Context, m models.Model) error {
	defer s.of.time()()
	return s.Session.Load(ctx, m)
}

func (s *timedSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	defer s.of.time()()
	return s.Session.Generate(ctx, r, token)
}

// BenchmarkCells measures llmparity's own time per cell in a shared launch, over a hundred cells of one token.
func BenchmarkCells(b *testing.B) {
	for _, e := range []engine.Engine{llamacpp.New(
		llamacpp.Config{Cache: cache.Dir(os.Getenv), Threads: 1, KVType: "f32"}), webLLM(webllm.Config{})} {
		b.Run(e.Name(), func(b *testing.B) {
			for b.Loop() {
				own, most := ownCost(b, e)
				b.ReportMetric(own.Seconds(), "own-s/cell")
				b.ReportMetric(most.Seconds(), "own-s/dearest-cell")
			}
		})
	}
}

func ownCost(b *testing.B, e engine.Engine) (mean, most time.Duration) {
	const cells = 100
	m := enginetest.TinyModel(b)
	timed := &timedEngine{Engine: e}
	p := plan.Plan{Name: "cells", Engines: []string{e.Name()}, Model: m.Path, MaxTokens: 1, Context: 64,
		Warmup:      plan.Warmup{Tokens: 1},
		Repetitions: 1, Isolation: plan.Shared, Timeout: plan.Duration(2 * time.Minute)}
	for i := range cells {
		p.Prompts = append(p.Prompts, plan.Prompt{Text: fmt.Sprintf("A%d", i)})
	}
	m.Context = p.Context
	var ended time.Time
	var worked, all time.Duration
	n := 0
	_, err := run.Do(b.Context(), run.Options{Matrix: expanded(b, p), Out: b.TempDir(),
		Open: func(context.Context, *plan.Setup) (run.Parts, error) {
			return run.Parts{Engines: []engine.Engine{timed}, Model: m}, nil
		},
		Progress: func(e run.Event) {
			if e.Kind != run.Ended {
				return
			}
			now, work := time.Now(), time.Duration(timed.worked.Load())
			if n++; n > 1 && n < cells {
				own := now.Sub(ended) - (work - worked)
				all, most = all+own, max(most, own)
			}
			ended, worked = now, work
		}})
	check(b, err)
	return all / (cells - 2), most
}
