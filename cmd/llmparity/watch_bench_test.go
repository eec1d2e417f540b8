//go:build slow

package main

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"

	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// BenchmarkWatched compares the speed of llama-server on one thread with and without watch, in alternating pairs.
// Watching has no effect if the interval of the median ratio contains 1.
func BenchmarkWatched(b *testing.B) {
	const pairs = 30
	session, pid := benchServer(b)
	decode := func(watched bool) float64 {
		if watched {
			defer startWatching(b, pid)()
		}
		return decodeRate(b, session)
	}
	decode(false) // warm
	var ratios []float64
	for i := range pairs {
		first := decode(i%2 == 0) // by turns first
		second := decode(i%2 != 0)
		ratio := first / second
		if i%2 != 0 {
			ratio = second / first
		}
		b.Logf("pair %d: %.1f and %.1f tokens/s, watched to unwatched %.4f", i+1, first, second, ratio)
		ratios = append(ratios, ratio)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), 0.95)
	b.ReportMetric(s.Center, "watched/unwatched")
	b.ReportMetric(s.Lo, "low")
	b.ReportMetric(s.Hi, "high")
	b.ReportMetric(0, "ns/op") // means nothing here
	const tells = 0.06         // a wider interval would hold 1 whatever watching did
	switch {
	case s.Hi-s.Lo > tells:
		b.Errorf("the machine is too busy with other things: the interval is %.4f to %.4f", s.Lo, s.Hi)
	case s.Lo > 1 || s.Hi < 1:
		b.Errorf("watched, the server decodes at %.4f (95 %%: %.4f to %.4f) of its speed", s.Center, s.Lo, s.Hi)
	}
}

// benchServer is a llama-server with SmolLM2 on one thread.
func benchServer(b *testing.B) (engine.Session, int) {
	path, err := models.Path(models.SmolLM2)
	check(b, err)
	m, err := models.Open(b.Context(), path, 512)
	check(b, err)
	session := load(b, b.Context(), new(engineFlags).chosen().Engine("llamacpp"), m)
	pid := ownServer()
	if pid == 0 {
		b.Fatal("no llama-server among our processes")
	}
	return session, pid
}

func startWatching(b *testing.B, pid int) (stop func()) {
	cmd := program(b, "watch", "--pid", strconv.Itoa(pid), "--interval", "0.1", "--output", "out.csv")
	check(b, cmd.Start())
	time.Sleep(500 * time.Millisecond) // starting is not watching
	return func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
			b.Fatal(err)
		}
	}
}

// decodeRate is the decode speed in tokens per second.
func decodeRate(b *testing.B, s engine.Session) float64 {
	const tokens = 128
	var first, last time.Time
	n := 0
	_, err := s.Generate(b.Context(), engine.Request{Prompt: "Once upon a time, in a village by the sea,",
		MaxTokens: tokens, IgnoreEOS: true},
		func(t record.Token) {
			if n++; n == 1 {
				first = t.At
			}
			last = t.At
		})
	if err != nil || n < 2 {
		b.Fatalf("%d tokens, %v", n, err)
	}
	return float64(n-1) / last.Sub(first).Seconds()
}
