package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"
	"golang.org/x/sys/unix"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/openai"
)

// asStamper makes the test binary act as the server of BenchmarkClient, in a separate process that shares neither our
// scheduler nor our garbage collector.
const asStamper = "LLMPARITY_TEST_STAMPER"

const (
	streams = 64
	between = 20 * time.Millisecond // 50 chunks a second
	chunks  = 50                    // per stream and round
	rounds  = 20
	alone   = 4   // rounds of each reader alone, for its CPU time
	allowed = 1.0 // ms: limit of our delay over the bare reader, at the 99th percentile
)

// now reads the system's monotonic clock, which all processes share.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// stamper serves streams in which each chunk's text is its send time. It prints its address.
func stamper() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	var mu sync.Mutex
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			if r.URL.Path == "/v1/models" {
				io.WriteString(w, `{"object":"list","data":[{"id":"m"}]}`)
			} else {
				http.NotFound(w, r)
			}
			return
		}
		var body struct {
			N int `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		time.Sleep(between / streams) // spread them
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		flush := w.(http.Flusher)
		tick := time.NewTicker(between)
		defer tick.Stop()
		var line []byte
		for range body.N {
			<-tick.C
			line = append(line[:0], `data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[{"index":0,"text":"`...)
			line = strconv.AppendInt(line, now(), 10)
			line = append(line, ` ","logprobs":null,"finish_reason":null}]}`+"\n\n"...)
			if _, err := w.Write(line); err != nil {
				return
			}
			flush.Flush()
		}
		fmt.Fprintf(w, "%s\n\n%s\n\ndata: [DONE]\n\n", finish, counts(1, body.N))
	})))
}

func startStamper(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asStamper+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p, err := child.Start(b.Context(), cmd)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Stop(0) })
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(at)
}

// clocks converts our times to the system's clock.
type clocks struct {
	at   time.Time
	same int64
}

// align uses the closest of 100 pairs of readings.
func align() clocks {
	var best clocks
	narrow := int64(1 << 62)
	for range 100 {
		before := now()
		at := time.Now()
		if after := now(); after-before < narrow {
			narrow, best = after-before, clocks{at, before + (after-before)/2}
		}
	}
	return best
}

func (c clocks) ns(t time.Time) int64 { return c.same + int64(t.Sub(c.at)) }

// bare reads a stream with minimal work: lines and when each was read.
func bare(b *testing.B, client *http.Client, url string) (sent, read []int64) {
	c := align()
	resp, err := client.Post(url+"/v1/completions", "application/json",
		strings.NewReader(fmt.Sprintf(`{"max_tokens":%d}`, chunks)))
	if err != nil {
		b.Error(err)
		return nil, nil
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return sent, read
		}
		at := time.Now()
		_, rest, ok := bytes.Cut(line, []byte(`"text":"`))
		stamp, _, _ := bytes.Cut(rest, []byte(" "))
		if n, err := strconv.ParseInt(string(stamp), 10, 64); ok && err == nil {
			sent, read = append(sent, n), append(read, c.ns(at))
		}
	}
}

// ours reads a stream with the engine.
func ours(b *testing.B, s engine.Session) (sent, read []int64) {
	c := align()
	usage, err := s.Generate(b.Context(), engine.Request{Prompt: "p", MaxTokens: chunks},
		func(t record.Token) { read = append(read, c.ns(t.At)) })
	if err != nil {
		b.Error(err)
	}
	for _, stamp := range strings.Fields(usage.Text) {
		n, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			b.Error(err)
		}
		sent = append(sent, n)
	}
	return sent, read
}

// atOnce runs all streams and returns the sorted delays of their chunks in milliseconds.
func atOnce(b *testing.B, stream func() (sent, read []int64)) []float64 {
	var mu sync.Mutex
	var delays []float64
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			sent, read := stream()
			if len(sent) != chunks || len(read) != chunks {
				b.Errorf("sent %d chunks and read %d, want %d", len(sent), len(read), chunks)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range sent {
				delays = append(delays, float64(read[i]-sent[i])/1e6)
			}
		})
	}
	wg.Wait()
	slices.Sort(delays)
	return delays
}

func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// BenchmarkClient compares the engine with a bare reader, each with 64 streams of 50 chunks per second. At the 99th
// percentile the engine may see a chunk at most 1 ms later, and no chunk may be lost. Both run at the same time,
// because other load moves that percentile by more than 1 ms. CPU time is measured in rounds of each alone.
func BenchmarkClient(b *testing.B) {
	url := startStamper(b)
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams, DisableCompression: true}}
	defer plain.CloseIdleConnections()
	s, _ := loaded(b, openai.Config{URL: url}, engine.Model{Model: record.Model{Name: "m", Format: record.Served}})
	for b.Loop() {
		var behind, p99ours, p99bare []float64
		for round := range rounds {
			var mine, theirs []float64
			var both sync.WaitGroup
			both.Go(func() { mine = atOnce(b, func() ([]int64, []int64) { return ours(b, s) }) })
			both.Go(func() { theirs = atOnce(b, func() ([]int64, []int64) { return bare(b, plain, url) }) })
			both.Wait()
			a, z := percentile(mine, 0.99), percentile(theirs, 0.99)
			behind, p99ours, p99bare = append(behind, a-z), append(p99ours, a), append(p99bare, z)
			b.Logf("round %d: p50 %.3f and %.3f ms, p99 %.3f and %.3f ms (ours, bare) of %d and %d chunks", round+1,
				percentile(mine, 0.5), percentile(theirs, 0.5), a, z, len(mine), len(theirs))
		}
		var cpu [2]time.Duration
		for i := range 2 * alone {
			before := cpuTime(b)
			if i%2 == 0 {
				atOnce(b, func() ([]int64, []int64) { return ours(b, s) })
			} else {
				atOnce(b, func() ([]int64, []int64) { return bare(b, plain, url) })
			}
			cpu[i%2] += cpuTime(b) - before
		}
		perChunk := func(d time.Duration) float64 { return d.Seconds() * 1e6 / (alone * streams * chunks) }
		b.ReportMetric(perChunk(cpu[0]), "ours-µs-CPU/chunk")
		b.ReportMetric(perChunk(cpu[1]), "bare-µs-CPU/chunk")
		d := summary(behind)
		b.ReportMetric(summary(p99ours).Center, "ours-p99-ms")
		b.ReportMetric(summary(p99bare).Center, "bare-p99-ms")
		b.ReportMetric(d.Center, "behind-ms")
		b.ReportMetric(d.Lo, "behind-lo-ms")
		b.ReportMetric(d.Hi, "behind-hi-ms")
		if d.Hi > allowed {
			b.Errorf("%.3f ms behind a bare reader (95%% CI %.3f to %.3f), limit %g", d.Center,
				d.Lo, d.Hi, allowed)
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func summary(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
}
