package protocol

import (
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkReading tells how long after an engine has taken a token's time its line is read here: what is in the times of an engine
// that takes none.
func BenchmarkReading(b *testing.B) {
	c, err := start("exec:test", []string{os.Args[0], "as-engine", "stream"}, time.Minute, nobody{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.close(grace)
	var late []time.Duration
	for _, op := range []string{opHello, opLoad, opGenerate} {
		if _, _, err := c.ask(b.Context(), op, 500, func(id int) any { return plainRequest{ID: id, Op: op} }, func(k *call, r received) error {
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
