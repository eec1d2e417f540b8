package main

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
)

// planOf returns the plan of a command line.
func planOf(t *testing.T, line string) (plan.Plan, error) {
	t.Helper()
	_, p, err := flagsOf(t, line)
	return p, err
}

// flagsOf returns the plan and the flags of a command line.
func flagsOf(t *testing.T, line string) (f runFlags, p plan.Plan, err error) {
	t.Helper()
	c := &cobra.Command{Use: "run", SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			got, err := f.plan(c, args)
			if err == nil {
				_, err = f.resolver(got, true, func(string, string) {}, io.Discard)
			}
			if err == nil {
				p = got
			}
			return err
		}}
	f.register(c)
	c.SetArgs(joinLists(append([]string{"run"}, strings.Fields(line)...))[1:])
	if e := c.Execute(); err == nil {
		err = e
	}
	return f, p, err
}

func TestFlagsAreAxes(t *testing.T) {
	lightTest(t)
	p, err := planOf(t, "--models tiny smollm2 --input-len 256,512 --output-len 64 --batch-size 1,8 --dtype f32 f16 --kv-cache-dtype f16 "+
		"--webllm-version 0.2.86 0.2.83 --weights as-is f32 --contexts 1024 2048 --thread-counts 1 2 --start warm,cold --until-ci 5% --until-figure ttft_ms --max-repetitions 9 "+
		"--order shuffled --seed 7 --cool-down 2s --timeout 4m --cell-timeout 1h --run-timeout 9h --isolation launch --requests 9 --goal-ttft 500")
	check(t, err)
	want := plan.Axes{InputLengths: []int{256, 512}, BatchSizes: []int{1, 8}, DTypes: []string{"f32", "f16"},
		VersionLists: map[string][]string{"webllm_version": {"0.2.86", "0.2.83"}},
		Weights:      []string{"as-is", "f32"},
		Contexts:     []int{1024, 2048}, ThreadCounts: []int{1, 2},
		Starts: []string{"warm", "cold"}}
	got := p.Axes
	if got.KVDTypes = nil; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if cells := len(expanded(t, p).Cells); cells == 0 || len(p.Models) != 2 || p.Isolation != plan.OfLaunch ||
		p.Order != plan.Shuffled || p.Seed != 7 ||
		p.UntilCI == nil || p.UntilCI.Width != 5 || p.UntilCI.Figure != "ttft_ms" || p.UntilCI.Most != 9 ||
		p.CoolDown != plan.Duration(2*time.Second) ||
		p.Traffic == nil || p.Traffic.Requests != 9 || p.Traffic.Goal.TTFTms != 500 ||
		p.RunTimeout != plan.Duration(9*time.Hour) {
		t.Errorf("%d cells, %v: %+v", cells, err, p)
	}
}

func TestPresets(t *testing.T) {
	lightTest(t)
	for _, name := range plans.Names() {
		if _, err := planOf(t, "--preset "+name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := planOf(t, "--preset concurrency --prompt-toks 512 --gen-toks 64 --concurrency 1 2 4 8 --output-dir there --dtype f16")
	if err != nil || !reflect.DeepEqual(p.InputLengths, []int{512}) || !reflect.DeepEqual(p.OutputLengths, []int{64}) ||
		!reflect.DeepEqual(p.Concurrency, []int{1, 2, 4, 8}) {
		t.Errorf("%v, %+v", err, p)
	}
	p, err = planOf(t, "--preset seqlen --seqlens 128 512 4096 --gen-toks 64")
	if err != nil || !reflect.DeepEqual(p.InputLengths, []int{128, 512, 4096}) || p.Context != 4160 {
		t.Errorf("%v, %+v", err, p)
	}
	p, err = planOf(t, "--preset kv-growth --contexts 512 1024 2048")
	if err != nil || !reflect.DeepEqual(p.Contexts, []int{512, 1024, 2048}) || p.Repetitions < 6 {
		t.Errorf("%v, %+v: fewer than six launches have no interval", err, p)
	}
	p, err = planOf(t, "--preset mixed --short 128 --long 4096")
	if err != nil || p.Context != 4096+8 || p.Traffic.Mix[0].InputTokens != 128 || p.InputLengths[0] != 128 ||
		p.Traffic.Mix[1].InputTokens != 4096 {
		t.Errorf("%v, %+v", err, p.Traffic)
	}
}

// The matrix runs every kind of the preset on each of its devices, with each dtype that the kind computes in. A device
// or dtype that a flag chooses stays alone.
func TestPresetMatrixVariesDevices(t *testing.T) {
	lightTest(t)
	for line, want := range map[string]struct{ dtypes, adapters int }{
		"":                                  {2, 1},
		"--dtype f32":                       {1, 1},
		"--adapter swiftshader":             {2, 0},
		"--dtype f16 --adapter swiftshader": {1, 0},
	} {
		p, err := planOf(t, "--preset matrix --models tiny --engines webllm,llamacpp,ollama "+line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		dtypes, adapters, ollama := map[string]bool{}, map[string]bool{}, 0
		for _, c := range expanded(t, p).Cells {
			switch c.Engine {
			case "webllm":
				dtypes[c.DType] = true
				if name := c.Settings["adapter"]; name != "" {
					adapters[name] = true
				}
			case "ollama":
				ollama++
			}
		}
		if len(dtypes) != want.dtypes || len(adapters) < want.adapters || want.adapters == 0 && len(adapters) > 0 {
			t.Errorf("%q: dtypes %v, adapters %v", line, dtypes, adapters)
		}
		if want.adapters > 0 && !adapters["swiftshader"] {
			t.Errorf("%q: adapters %v", line, adapters)
		}
		if ollama != 1 {
			t.Errorf("%q: %d cells of an engine without dtypes of its own", line, ollama)
		}
	}
}

// Engines that are missing are left out with a note, except those that the user names.
func TestPresetEnginesSkipsMissingOnes(t *testing.T) {
	lightTest(t)
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "LLMPARITY_CACHE"} {
		t.Setenv(name, t.TempDir())
	}
	server := put(t, t.TempDir(), "llama-server", "#!/bin/sh\n")
	for line, want := range map[string]string{
		"--llama-server " + server:                                 "llamacpp",
		"--ollama-url http://127.0.0.1:1 --llama-server " + server: "llamacpp ollama",
		"--engines ollama,llamacpp":                                "ollama llamacpp",
	} {
		f, p, err := flagsOf(t, "--preset engines "+line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		// a browser may lie at its usual place
		got := strings.Join(slices.DeleteFunc(p.Engines, func(name string) bool { return name == "webllm" }), " ")
		said := strings.Contains(f.left, "llamacpp-oneshot")
		if got != want || said == strings.Contains(line, "--engines") {
			t.Errorf("%s: engines %s, want %s; said: %q", line, got, want, f.left)
		}
	}
}
