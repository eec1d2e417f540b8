//go:build slow

package main

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/browser"
	"llmparity/browser/byhand"
	"llmparity/browser/driver"
	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kinds"
)

// BenchmarkPageStop presses Stop while a model loads and while it generates, on the page's thread and in a worker. The
// page answers within 200 ms, and says that nothing is left on the GPU.
func BenchmarkPageStop(b *testing.B) {
	browserTest(b)
	_, address := pageServed(b)
	h := newHand(b)
	h.opens(address)
	h.types("#maxTokens", "400")
	var all []float64
	for range 3 {
		for _, engine := range []string{"webllm", "wllama wasm"} {
			for _, thread := range []string{"worker", "page"} {
				for _, phase := range []string{"load", "generate"} {
					h.chooses("#engine", engine)
					h.chooses("#thread", thread)
					h.clicks("#start")
					h.reads("#phase", phase)
					time.Sleep(time.Duration(len(all)%3) * 150 * time.Millisecond) // it is somewhere in the phase
					took, said := h.stops()
					h.waits()
					b.Logf("%s in a %s, %s: %v, %s", engine, thread, phase, took, said)
					all = append(all, took.Seconds())
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(slices.Max(all), "worst-s")
	if slices.Max(all) > 0.2 {
		b.Error("Stop takes more than 200 ms")
	}
}

// BenchmarkPagePerturbation generates in a person's browser with all samplers and without. The CPU time is that of the
// whole browser, so that of the page around the engine, which passes on what is read, counts too.
func BenchmarkPagePerturbation(b *testing.B) {
	browserTest(b)
	hands, ended := make(chan driver.Hand), make(chan bool)
	lends := func(_ context.Context, hand driver.Hand, _ []string, _, _ io.Writer) error {
		hands <- hand
		<-ended
		return nil
	}
	s, err := byhand.Start(byhand.Options{Engines: byhand.EnginesOf(kinds.All), Models: []string{"tiny"},
		Out: b.TempDir(), Say: func(text string) { b.Log(text) }, Run: lends})
	check(b, err)
	defer func() { check(b, s.Close()) }()
	defer close(ended)
	h := newHand(b)
	h.opens(s.Base + "/")
	h.clicks("#start")
	hand, m := <-hands, enginetest.TinyModel(b)
	open := func(bool) enginetest.Side {
		c := webllm.Config{Settings: browser.Settings{Thread: "worker", Adapter: "auto"}}
		c.ByHand(hand)
		e, probe := webLLM(c), &enginetest.Probe{}
		check(b, e.Check(b.Context(), m))
		check(b, e.Prepare(b.Context(), m, func(string) {}))
		session, err := e.Open(b.Context(), probe)
		check(b, err)
		check(b, session.Load(b.Context(), m))
		return enginetest.Side{Session: session, Probe: probe, Root: chromedp.FromContext(h.ctx).Browser.Process().Pid}
	}
	p := enginetest.Perturbed{Open: open, Launches: 5, Pairs: 24, SamplersAlone: true,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 100, IgnoreEOS: true}}
	p.Run(b)
}
