package main

import (
	"slices"
	"strings"
	"testing"
)

func TestListsWithSpaces(t *testing.T) {
	lightTest(t)
	for _, c := range []struct{ in, want string }{
		{"run --concurrency 1 2 4 8", "run --concurrency=1,2,4,8"},
		{"run --concurrency 1,2 4", "run --concurrency=1,2,4"},
		{"run --concurrency 1, 2, 4", "run --concurrency=1,2,4"},
		{"run --concurrency=1 2 4", "run --concurrency=1,2,4"},
		{"run --seqlens 128 512 plan.yaml --quiet", "run --seqlens=128,512 plan.yaml --quiet"},
		{"run --seqlens 128 my-plan", "run --seqlens=128 my-plan"},
		{"run plan.yaml --input-len 256 512 --gen-toks 64", "run plan.yaml --input-len=256,512 --gen-toks=64"},
		{"run --dtype f32 f16 plan.yml", "run --dtype=f32,f16 plan.yml"},
		{"run --kv-cache-dtype f16 q8_0 q4_0", "run --kv-cache-dtype=f16,q8_0,q4_0"},
		{"run --webllm-version 0.2.86 0.2.83 p.YAML", "run --webllm-version=0.2.86,0.2.83 p.YAML"},
		{"run --engines webllm llamacpp-oneshot plan", "run --engines=webllm,llamacpp-oneshot plan"},
		{"run --engines exec:./a plan", "run --engines=exec:./a plan"},
		{"run --models tiny my.gguf plan.yaml", "run --models=tiny,my.gguf plan.yaml"},
		{"run --repetitions 3 4", "run --repetitions 3 4"}, // no list
		{"run --concurrency", "run --concurrency"},         // the flag's to say
		{"run --concurrency -1 2", "run --concurrency=-1,2"},
		{"run --concurrency x 2", "run --concurrency=x,2"},
		{"run -q --concurrency 1 -- --concurrency 2 3", "run -q --concurrency=1 -- --concurrency 2 3"},
		{"run --prompt --concurrency 1 2", "run --prompt --concurrency=1,2"},
		{"watch --concurrency 1 2", "watch --concurrency 1 2"},
		{"report run --figures", "report run --figures=all"},
		{"report run --figures --details", "report run --figures=all --details"},
		{"report run --figures decode ttft -o x.html", "report run --figures=decode,ttft -o x.html"},
		{"report --figures decode results/latest", "report --figures=decode results/latest"},
		{"report run --figures ./out", "report run --figures=./out"},
		{"", ""},
	} {
		if got := joinLists(strings.Fields(c.in)); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v", c.in, got)
		}
	}
}

// Models that generate no text are not offered.
func TestModelNames(t *testing.T) {
	lightTest(t)
	names := strings.Join(modelNames(), " ")
	mentions(t, names, "tiny-q4_0", "smollm2", "Llama-3.2-1B-Instruct-q4f16_1-MLC")
	if strings.Contains(names, "arctic-embed") || strings.Contains(names, "vision") {
		t.Errorf("offered are %s", names)
	}
}

func FuzzLists(f *testing.F) {
	lightTest(f)
	for _, seed := range []string{"run --concurrency 1 2", "run --seqlens=1 2 --", "run --models a b c.yaml",
		"run --dtype ,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		out := joinLists(slices.Clone(args))
		if again := joinLists(slices.Clone(out)); !slices.Equal(again, out) && !strings.Contains(line, ",") {
			t.Errorf("%q: %v, then %v", args, out, again)
		}
		if len(out) > len(args) {
			t.Errorf("%q: %v has more", args, out)
		}
	})
}
