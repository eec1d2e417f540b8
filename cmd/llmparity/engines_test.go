package main

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"llmparity/browser/webllm"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kinds"
)

// A flag of run applies to all engines, or a Kind lists it. Otherwise it would be ignored without a message.
func TestEveryRunFlagBelongsToEnginesOrAll(t *testing.T) {
	lightTest(t)
	general := []string{"engines", "engine", "model", "mirror", "context", "prompt", "max-tokens", "repetitions",
		"isolation", "out", "quiet", "help", "help-all", "no-check-oom", "parity", "text-of", "quality", "quality-of",
		"no-check", "check-reference",
		"aa", "against", "allow-changed", "arrivals", "baseline", "detect", "inconclusive", "no-baseline", "under-test",
		"batch-size", "cell-timeout", "concurrency", "contexts", "cool-down", "dry-run",
		"gen-toks", "goal-e2e", "goal-tpot", "goal-ttft", "input-len", "json", "kv-cache-dtype", "long", "loop",
		"max-repetitions",
		"models", "order", "output-dir", "output-len", "preset", "prompt-toks", "ramp", "rate",
		"reference-cell", "requests", "resume",
		"retry-failed", "run-timeout", "seed", "seqlens", "short", "start", "start-delay", "storage", "stored",
		"strict",
		"temperature", "thread-counts", "timeout", "turns", "until-ci",
		"until-figure", "chat", "allow-fallback"}
	run := runCommand()
	of := map[string]bool{}
	for _, k := range kinds.All {
		for _, flag := range k.Flags() {
			of[flag] = true
			if run.Flags().Lookup(flag) == nil {
				t.Errorf("%s heeds --%s, which run doesn't have", k.Name, flag)
			}
		}
	}
	run.Flags().VisitAll(func(flag *pflag.Flag) {
		if of[flag.Name] == slices.Contains(general, flag.Name) {
			t.Errorf("--%s: name it among the flags of the engine.Kind that heeds it, or here as one for all", flag.Name)
		}
	})
}

// The user asks for an engine by its name, or by a flag that is for it alone.
func TestEnginesThatAreAskedFor(t *testing.T) {
	lightTest(t)
	for line, want := range map[string][2]bool{"": {}, "--threads 2": {}, "--kernels gpu": {true, false},
		"--llamacpp-batch 64": {}, "--engines webllm,llamacpp": {true, true}} {
		f, _, err := flagsOf(t, line)
		check(t, err)
		if got := [2]bool{f.byName("webllm"), f.byName("llamacpp")}; got != want {
			t.Errorf("%q: webllm, llamacpp: %v, want %v", line, got, want)
		}
	}
}

// webLLM returns a configured WebLLM.
func webLLM(c webllm.Config) *webllm.WebLLM {
	return webllm.New(c, engine.Settings{Cache: cache.Dir(os.Getenv)})
}

// Settings that change the computation must not fail a run because its tokens differ from the reference.
func TestOtherDtypesMayChangeTokens(t *testing.T) {
	lightTest(t)
	engines := []string{"webllm", "llamacpp", "llamacpp-oneshot", "ollama"}
	for _, c := range []struct {
		llama engine.Section
		want  string
	}{
		{engine.Section{"cache_type_k": "f32", "flash_attention": "off"}, "[ollama]"},
		{engine.Section{"flash_attention": "auto"}, "[llamacpp llamacpp-oneshot ollama]"},
		{engine.Section{"cache_type_v": "f16"}, "[llamacpp llamacpp-oneshot ollama]"},
		{engine.Section{"gpu_layers": 1}, "[llamacpp llamacpp-oneshot ollama]"},
	} {
		f, got := &runFlags{}, []string{}
		made, err := f.enginesOf(true, func(string, string) {})(t.Context(), plan.Plan{Engines: engines,
			Sections: map[string]engine.Section{"llamacpp": c.llama}})
		for _, e := range made {
			if e.Caps().Rounds {
				got = append(got, e.Name())
			}
		}
		if fmt.Sprint(got) != c.want || err != nil {
			t.Errorf("%+v: of %s nothing is expected, want %s (%v)", c.llama, got, c.want, err)
		}
	}
}
