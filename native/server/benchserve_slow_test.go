//go:build slow

package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/native/server"
)

// load is what a client saw: the median time to first token and per later token in ms, and output tokens/s.
type load struct{ ttft, tpot, throughput float64 }

func (l load) over(o load) load {
	return load{l.ttft / o.ttft, l.tpot / o.tpot, l.throughput / o.throughput}
}

// The requests of both sides.
const (
	loadInput, loadOutput = 64, 32
	loadRequests          = 40 // for each client
)

// prompts have about loadInput tokens, each with another beginning.
func loadPrompt(n int) string {
	return fmt.Sprintf("%d. ", n) + strings.Repeat("Once upon a time there lived a clockmaker. ", 3)
}

// ourLoad lets clients send requests, each its next one after an answer.
func ourLoad(b *testing.B, s engine.Session, clients int) load {
	b.Helper()
	var mu sync.Mutex
	var first, later []float64
	var all sync.WaitGroup
	tokens, begin := 0, time.Now()
	for c := range clients {
		all.Go(func() {
			for n := range loadRequests {
				g, err := enginetest.Generate(b.Context(), s, engine.Request{Prompt: loadPrompt(c*loadRequests + n),
					MaxTokens: loadOutput,
					IgnoreEOS: true})
				if err != nil || len(g.Tokens) != loadOutput {
					b.Errorf("%d tokens: %v", len(g.Tokens), err)
					return
				}
				mu.Lock()
				one, last := g.Tokens[0].At, g.Tokens[loadOutput-1].At
				first = append(first, one.Sub(g.Usage.Sent).Seconds()*1e3)
				later = append(later, last.Sub(one).Seconds()*1e3/(loadOutput-1))
				tokens += loadOutput
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return load{median(first), median(later), float64(tokens) / time.Since(begin).Seconds()}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// benchServe lets vLLM's own client do the same on the same server.
func benchServe(b *testing.B, url string, m models.Model, dir string, clients int) load {
	b.Helper()
	out := b.TempDir()
	cmd := exec.CommandContext(b.Context(), program(b), "bench", "serve", "--backend", "openai", "--base-url",
		url, "--model", m.Name, "--tokenizer", dir, "--dataset-name", "random", "--random-input-len",
		strconv.Itoa(loadInput),
		"--random-output-len", strconv.Itoa(loadOutput), "--num-prompts", strconv.Itoa(loadRequests*clients),
		"--max-concurrency", strconv.Itoa(clients), "--ignore-eos", "--temperature", "0", "--disable-tqdm",
		"--save-result", "--result-dir", out, "--result-filename", "r.json")
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1")
	text, err := cmd.CombinedOutput()
	text = text[max(0, len(text)-2000):]
	if err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	var r struct {
		TTFT       float64 `json:"median_ttft_ms"`
		TPOT       float64 `json:"median_tpot_ms"`
		Throughput float64 `json:"output_throughput"`
		Completed  int     `json:"completed"`
	}
	check.Err(b, json.Unmarshal(check.Read(b, filepath.Join(out, "r.json")), &r))
	if r.Completed != loadRequests*clients {
		b.Fatalf("%d requests completed: %s", r.Completed, text)
	}
	return load{r.TTFT, r.TPOT, r.Throughput}
}

// address is that of the server whose processes are sampled, from its command line.
func address(b *testing.B, p *enginetest.Probe) string {
	b.Helper()
	for _, s := range p.Attached() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Describe().PID))
		if args := strings.Split(string(line), "\x00"); err == nil && slices.Contains(args, "--port") {
			return "http://127.0.0.1:" + args[slices.Index(args, "--port")+1]
		}
	}
	b.Fatal("no process of the server has a port")
	return ""
}

// apart starts vLLM on one core, and leaves the others to the clients: a client that computes more would otherwise slow
// the server down, and its times would be another server's.
func apart(b *testing.B, s engine.Settings) *server.Engine {
	b.Helper()
	if runtime.NumCPU() < 2 {
		b.Skip("needs a core for the server and one for its clients")
	}
	others, own := fmt.Sprintf("1-%d", runtime.NumCPU()-1), strconv.Itoa(os.Getpid())
	if text, err := exec.Command("taskset", "-a", "-c", "-p", others, own).CombinedOutput(); err != nil {
		b.Skipf("taskset: %v: %s", err, text)
	}
	pinned := check.Script(b, "exec taskset -c 0 "+program(b)+` "$@"`, b.TempDir(), "vllm")
	return of(b, server.VLLM, s, func(c *server.Config) { c.Path, c.Args = pinned, "--enforce-eager" })
}

// BenchmarkAgainstBenchServe compares our client with vLLM's, in alternating runs on one server. The interval of the
// median ratio must be within 10%.
func BenchmarkAgainstBenchServe(b *testing.B) {
	pairs := 8
	if testing.Short() {
		pairs = 2
	}
	s := settings()
	s.Slots = 8
	e := apart(b, s)
	m := enginetest.TinyModel(b)
	check.Err(b, e.Prepare(b.Context(), m, func(string) {}))
	session, p := enginetest.Open(b, e)
	enginetest.Load(b, session, m)
	url, dir := address(b, p), models.FolderOf(m)
	b.ReportMetric(0, "ns/op") // meaningless here
	for _, clients := range []int{1, 4, 8} {
		var ratios []load
		ourLoad(b, session, clients) // a warm-up
		for i := range pairs {
			var ours, theirs load
			for turn := range 2 {
				if (i+turn)%2 == 0 {
					ours = ourLoad(b, session, clients)
				} else {
					theirs = benchServe(b, url, m, dir, clients)
				}
			}
			b.Logf("%d clients, pair %d: ours TTFT %.1f ms, TPOT %.2f ms, %.0f tokens/s; theirs %.1f, %.2f, %.0f", clients, i+1,
				ours.ttft, ours.tpot, ours.throughput, theirs.ttft, theirs.tpot, theirs.throughput)
			ratios = append(ratios, ours.over(theirs))
		}
		for name, of := range map[string]func(load) float64{"TTFT": func(l load) float64 { return l.ttft },
			"TPOT":       func(l load) float64 { return l.tpot },
			"throughput": func(l load) float64 { return l.throughput }} {
			var values []float64
			for _, r := range ratios {
				values = append(values, of(r))
			}
			r := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
			b.Logf("%d clients, %s: %.3f (95%% CI %.3f to %.3f)", clients, name, r.Center, r.Lo, r.Hi)
			if r.Lo < 0.9 || r.Hi > 1.1 {
				b.Errorf("%d clients, %s: %.3f (95%% CI %.3f to %.3f) is not within 10%%", clients, name, r.Center, r.Lo, r.Hi)
			}
		}
	}
}
