//go:build slow

package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What the server of known times does: the first token of requests 0, 1, 2 … comes after knownFirst, each later one
// after knownGap, in turn.
var (
	knownFirst = []time.Duration{60 * time.Millisecond, 80 * time.Millisecond, 100 * time.Millisecond,
		120 * time.Millisecond, 140 * time.Millisecond}
	knownGap = []time.Duration{10 * time.Millisecond, 15 * time.Millisecond, 20 * time.Millisecond}
)

const (
	knownRequests = 120 // for each number of clients; all times occur equally often
	knownTokens   = 33
)

// known is the how-manieth request's times.
func known(i int) (first, gap time.Duration) {
	return knownFirst[i%len(knownFirst)], knownGap[i/len(knownFirst)%len(knownGap)]
}

// knownServer answers at times that are known beforehand: no token is late because an earlier one was.
func knownServer(b *testing.B) string {
	var asked atomic.Int64
	asked.Store(-1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived := time.Now()
		if r.Method != http.MethodPost {
			if r.URL.Path != "/v1/models" {
				http.NotFound(w, r)
				return
			}
			io.WriteString(w, `{"data":[{"id":"known"}]}`)
			return
		}
		var q struct {
			Prompt string `json:"prompt"`
			Tokens int    `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		first, gap := known(0)
		if q.Tokens == knownTokens { // not the load's, nor the warm-up's
			first, gap = known(int(asked.Add(1)))
		}
		for n := range q.Tokens {
			time.Sleep(time.Until(arrived.Add(first + time.Duration(n)*gap)))
			io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\" a\"}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}],"+
			"\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", q.Tokens)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// knownFigures are the figures of all requests with a number of clients: percentiles by nearest rank, and the output of
// clients that each send as many requests, the next one when they have an answer.
func knownFigures(clients int) map[string]float64 {
	var first, gaps, whole []time.Duration
	type client struct {
		answered time.Duration
		left     int
	}
	all := make([]client, clients)
	for c := range all {
		all[c].left = knownRequests / clients
	}
	var last time.Duration
	for i := range knownRequests {
		f, g := known(i)
		took := f + (knownTokens-1)*g
		first, gaps, whole = append(first, f), append(gaps, g), append(whole, took)
		next := slices.MinFunc(all, func(a, b client) int { return cmp.Compare(a.answered, b.answered) })
		c := slices.Index(all, next)
		all[c] = client{next.answered + took, next.left - 1}
		last = max(last, all[c].answered)
		all = slices.DeleteFunc(all, func(c client) bool { return c.left == 0 })
	}
	at := func(all []time.Duration, p int) float64 {
		slices.Sort(all)
		return all[(len(all)*p+99)/100-1].Seconds() * 1e3
	}
	return map[string]float64{
		"ttft_p50_ms": at(first, 50), "ttft_p95_ms": at(first, 95), "ttft_p99_ms": at(first, 99),
		"tpot_p50_ms": at(gaps, 50), "tpot_p99_ms": at(gaps, 99),
		"e2e_p50_ms": at(whole, 50), "e2e_p99_ms": at(whole, 99),
		"aggregate_tps": knownRequests * knownTokens / last.Seconds(),
	}
}

// BenchmarkKnownTimes measures a server whose times are known. Each figure must be within 3%.
func BenchmarkKnownTimes(b *testing.B) {
	b.ReportMetric(0, "ns/op") // meaningless here
	for _, clients := range []int{1, 4, 8} {
		run := program(b, "run", "-q", "--engines", "openai", "--openai-url", knownServer(b), "--model", "served:known",
			"--repetitions", "1", "--concurrency", strconv.Itoa(clients), "--requests", strconv.Itoa(knownRequests),
			"--max-tokens", strconv.Itoa(knownTokens), "--prompt", "one two three")
		if text, err := run.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, text)
		}
		dir := filepath.Join(run.Dir, "results", "latest")
		rows, err := csv.NewReader(strings.NewReader(good(b, "report", dir, "--columns", "all"))).ReadAll()
		check(b, err)
		for name, want := range knownFigures(clients) {
			at := slices.Index(rows[0], name)
			if at < 0 {
				b.Fatalf("no column %s in %v", name, rows[0])
			}
			got, err := strconv.ParseFloat(rows[1][at], 64)
			check(b, err)
			b.Logf("%d clients, %s: %.4g, known %.4g, ratio %.4f", clients, name, got, want, got/want)
			if ratio := got / want; ratio < 0.97 || ratio > 1.03 {
				b.Errorf("%d clients, %s: %.4g, and the server's is %.4g", clients, name, got, want)
			}
		}
	}
}
