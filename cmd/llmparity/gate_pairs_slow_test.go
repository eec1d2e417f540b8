//go:build slow && linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"llmparity/internal/kit/fault"
)

// The numbers of pairs of unchanged and of 30% slower runs.
const (
	pairsVariable = "LLMPARITY_PAIRS"
	slowVariable  = "LLMPARITY_SLOW_PAIRS"
)

// throttled is the process that the test binary slows down.
const throttled = "LLMPARITY_TEST_THROTTLED"

func init() {
	var pid, percent int
	if n, _ := fmt.Sscanf(os.Getenv(throttled), "%d %d", &pid, &percent); n == 2 {
		throttle(pid, percent)
		os.Exit(0)
	}
}

// throttle stops a process and its children periodically until it ends, so that it takes longer by some percent.
func throttle(pid, percent int) {
	var all []int
	var looked time.Time
	for {
		if time.Since(looked) > 50*time.Millisecond {
			all, looked = family(pid), time.Now()
		}
		begin := time.Now()
		for _, p := range all {
			_ = syscall.Kill(p, syscall.SIGSTOP) // it may have ended
		}
		time.Sleep(2 * time.Millisecond)
		stopped := time.Since(begin)
		for _, p := range all {
			_ = syscall.Kill(p, syscall.SIGCONT)
		}
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(stopped * 100 / time.Duration(percent))
	}
}

// family is a process with its descendants.
func family(root int) []int {
	parents := map[int]int{}
	all, _ := procfs.AllProcs() // Linux has them
	for _, p := range all {
		if stat, err := p.Stat(); err == nil { // else it ended meanwhile
			parents[p.PID] = stat.PPID
		}
	}
	out := []int{root}
	for i := 0; i < len(out); i++ {
		for pid, parent := range parents {
			if parent == out[i] {
				out = append(out, pid)
			}
		}
	}
	return out
}

// slowed writes a program that runs another one, slowed down by a process that is not its child and so not measured.
func slowed(t *testing.T, name, path string, percent int) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\n(%s=\"$$ %d\" setsid '%s' >/dev/null 2>&1 &)\nexec '%s' \"$@\"\n", throttled,
		percent, os.Args[0], path)
	out, err := filepath.Abs(put(t, ".", name, script))
	check(t, err)
	return out
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Gates of real runs of the tiny model in WebLLM and of a larger one in llama.cpp, ten launches a side. Of unchanged
// pairs none fails and nine in ten pass; of pairs with a side slowed down by 30% none passes and nine in ten fail. It
// takes a quiet machine:
//
//	LLMPARITY_PAIRS=30 LLMPARITY_SLOW_PAIRS=20 go test -tags slow ./cmd/llmparity -run GateOfRealPairs -v -timeout 6h
func TestGateOfRealPairs(t *testing.T) {
	moved(t)
	// llama.cpp has a model that takes milliseconds a token: of the tiny one's 0.2 ms most is the way from server to
	// client, and varies by 17% from launch to launch.
	good(t, "model", "random", "--layers", "4", "--hidden", "512", "--heads", "8", "--kv-heads", "4", "--ffn", "1536",
		"--vocab", "2048", "-o", "small.gguf")
	// A pair is of one engine: a gate of a single cell is decided by few launches, as that of CI is.
	for name, cell := range map[string]string{"webllm": "model: tiny\noutput_lengths: [128]",
		"llamacpp": "model: small.gguf\noutput_lengths: [384]"} {
		text := cell + "\nengines: [" + name + "]\ntemperature: 0\ncontext: 1024\nrepetitions: 10" +
			"\ntimeout: 3m\nparity: false\nwarmup: {launches: 1, tokens: 8}\nprompts:\n  - The clocks were striking\n" +
			"gate:\n  vs_baseline: {decode_tps: -5%, peak_pss_mb: +3%, ttft_ms: {change: +10%, level: warn}}\n"
		put(t, ".", name+".yaml", text)
	}
	server, chrome := llamaServer(t), ownChrome(t)
	type flags = map[string][]string
	here := flags{"webllm": {"--chrome", chrome}, "llamacpp": {"--llama-server", server}}
	// Chrome also waits, and that takes no longer.
	slower := flags{"webllm": {"--chrome", slowed(t, "slow-chrome", chrome, 48)},
		"llamacpp": {"--llama-server", slowed(t, "slow-llama-server", server, 32)}}
	kinds := []pairs{{"unchanged", number(t, pairsVariable, 2), here, "", fault.Gate, map[int]int{}},
		{"30% slower", number(t, slowVariable, 2), slower, fault.Gate, "", map[int]int{}}}
	for n := range max(kinds[0].n, kinds[1].n) { // in turns: what is cut short says something of both
		for _, k := range kinds {
			if n >= k.n {
				continue
			}
			begin, name := time.Now(), []string{"webllm", "llamacpp"}[n%2]
			code, said := realPair(t, name+".yaml", here[name], k.flags[name])
			k.count[code]++
			t.Logf("%s, pair %d of %d, %s: exit code %d, %.0f s\n%s", k.what, n+1, k.n, name, code,
				time.Since(begin).Seconds(), said)
			if code != 0 && code != fault.Gate.ExitCode() && code != fault.Inconclusive.ExitCode() {
				t.Fatalf("%s: exit code %d", k.what, code)
			}
		}
	}
	for _, k := range kinds {
		t.Logf("%s: exit codes of %d pairs: %v", k.what, k.n, k.count)
		if k.count[k.never.ExitCode()] > 0 || k.count[k.mostly.ExitCode()] < k.n-k.n/10 {
			t.Errorf("%s: of %d pairs %d exit with %q, which none should, and %d with %q, which nine in ten should",
				k.what, k.n, k.count[k.never.ExitCode()], k.never, k.count[k.mostly.ExitCode()], k.mostly)
		}
	}
}

// pairs are the pairs of runs with their expected outcome.
type pairs struct {
	what          string
	n             int
	flags         map[string][]string // by engine
	mostly, never fault.Kind
	count         map[int]int // by exit code
}

// realPair measures two runs of a plan, the second with other flags, and returns the gate's verdict.
func realPair(t *testing.T, plan string, base, now []string) (code int, said string) {
	t.Helper()
	out, errs, code := called(append([]string{"run", plan, "--quiet", "--out", "results", "--against",
		plan + " " + strings.Join(base, " ")}, now...)...)
	_, said, _ = strings.Cut(out, "\nThe gate ")
	return code, said + errs
}
