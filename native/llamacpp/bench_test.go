package llamacpp

import (
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
)

// BenchmarkGenerate puts what the client measures beside the server's own timings of the same generations.
func BenchmarkGenerate(b *testing.B) {
	m := enginetest.TinyModel(b)
	s, _ := loadedSession(b, m)
	const n = 256
	var client, server, prefill, evaluated time.Duration
	for b.Loop() {
		var first, last time.Time
		usage, err := s.Generate(b.Context(),
			engine.Request{Prompt: "The third clock had stopped.", MaxTokens: n, IgnoreEOS: true},
			func(t record.Token) {
				if last = t.At; t.Index == 0 {
					first = t.At
				}
			})
		if err != nil {
			b.Fatal(err)
		}
		client += last.Sub(first)
		prefill += first.Sub(usage.Sent)
		server += milliseconds(usage.Reported["predicted_ms"])
		evaluated += milliseconds(usage.Reported["prompt_ms"])
	}
	intervals := float64(b.N * (n - 1))
	b.ReportMetric(intervals/client.Seconds(), "client-tok/s")
	b.ReportMetric(intervals/server.Seconds(), "server-tok/s")
	b.ReportMetric(prefill.Seconds()*1e3/float64(b.N), "ttft-ms")
	b.ReportMetric(evaluated.Seconds()*1e3/float64(b.N), "server-prefill-ms")
}

// BenchmarkLaunch is an open, a load and a close.
func BenchmarkLaunch(b *testing.B) {
	m := enginetest.TinyModel(b)
	e := newEngine(b)
	for b.Loop() {
		s, p := opened(b, e)
		if err := s.Load(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		for _, span := range p.Spans() {
			b.ReportMetric(span.End.Sub(span.Begin).Seconds()*1e3, span.Name+"-ms")
		}
		s.Close()
	}
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
