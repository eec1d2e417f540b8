package protocol

import (
	"os"
	"slices"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// BenchmarkReading tells how long after an engine has taken a token's time its line is read here: what is in the times
// of an engine that takes none.
func BenchmarkReading(b *testing.B) {
	c, err := start("exec:test", []string{os.Args[0], "as-engine", "stream"}, time.Minute, engine.Nobody{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.close(grace)
	var late []time.Duration
	for _, op := range []string{opHello, opLoad, opGenerate} {
		if _, _, err := c.ask(b.Context(), op, 500, func(id int) any { return plainRequest{ID: id, Op: op} },
			func(k *call, r received) error {
				at, err := c.clock.time(*r.NS, k.sent, r.at)
				late = append(late, r.at.Sub(at))
				return err
			}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Nanoseconds())/1000, "µs-p50")
	b.ReportMetric(float64(late[len(late)*99/100].Nanoseconds())/1000, "µs-p99")
	b.ReportMetric(float64(c.clock.off.Nanoseconds())/1000, "µs-clock")
}

// BenchmarkLoad is a load that the engine has nothing to do for: what of ours lies within the time of one.
func BenchmarkLoad(b *testing.B) {
	e := New(Config{Command: Command{Name: "test", Argv: []string{os.Args[0], "as-engine", "loads"}}})
	s, err := e.Open(b.Context(), engine.Nobody{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var took []time.Duration
	for range 100 {
		begin := time.Now()
		if err := s.Load(b.Context(), engine.Model{Model: record.Model{Name: "none", Format: record.Served,
			Context: 8}}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if err := s.Unload(b.Context()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs-p50")
}
