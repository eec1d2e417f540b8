package traffic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"llmparity/internal/record"
)

// BenchmarkLateness tells how late requests are sent by 64 clients to a server on the loopback interface that streams
// sixteen pieces, one every 2 ms, and by an open loop of as many requests a second as that server would be asked for.
// What an engine computes meanwhile takes the processor from us: see it with llama-server running beside.
func BenchmarkLateness(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 16 {
			time.Sleep(2 * time.Millisecond)
			fmt.Fprintf(w, "data: {\"content\":\" word\",\"n\":%d}\n\n", i)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	do := func(ctx context.Context, _ Request) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return "", err
	}
	for name, traffic := range map[string]record.Traffic{
		"closed":  {Loop: record.ClosedLoop, Concurrency: 64, Requests: 64 * 20},
		"poisson": {Loop: record.OpenLoop, Arrivals: record.Poisson, Rate: 500, Requests: 1280, Seed: 1},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := New(traffic)
				if err != nil {
					b.Fatal(err)
				}
				report := Drive(b.Context(), s, 64, do)
				if err := report.Err(); err != nil {
					b.Fatal(err)
				}
				l := report.Lateness()
				b.ReportMetric(float64(l.P50.Nanoseconds())/1e3, "p50-late-µs")
				b.ReportMetric(float64(l.P99.Nanoseconds())/1e3, "p99-late-µs")
				b.ReportMetric(float64(l.Max.Nanoseconds())/1e3, "max-late-µs")
			}
		})
	}
}
