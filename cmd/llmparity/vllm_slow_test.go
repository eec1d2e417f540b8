//go:build slow

package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/native/server"
)

// vLLM and llama.cpp run one model from one plan, with the same tokens and scores, and the KV cache is as predicted.
func TestVLLMBesideLlamaCPP(t *testing.T) {
	lightTest(t)
	cmd := oneLaunch(t, "llamacpp,vllm", "--context", "512", "--max-tokens", "24", "--vllm-args=--enforce-eager",
		"--timeout", "10m",
		"--prompt", tinytest.Prompts()[1].Text)
	well(t, cmd)
	want, ran := enginetest.Tiny(t, 24)[1].Expected, map[string]bool{}
	r := recorded(t, cmd.Dir)
	for _, a := range r.Attempts {
		for _, q := range a.Measured() {
			ran[lastEngine(a).Name] = true
			if ids := idsOf(q); !slices.Equal(ids, want) {
				t.Errorf("%s: %v, the reference has %v", lastEngine(a).Name, ids, want)
			}
		}
	}
	if len(ran) != 2 {
		t.Errorf("%v ran", ran)
	}
	mentions(t, details(t, cmd.Dir), "identical: 24 of 24 token ids")
}

// vLLM chooses the reference's tokens with random models of other families, on every prompt.
func TestVLLMRunsFamilies(t *testing.T) {
	lightTest(t)
	for _, name := range []string{"qwen3", "gemma3, two bases and linear scaling"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			feature, m := featureNamed(t, ctx, name)
			answersLikeReference(t, ctx, load(t, ctx, eagerVLLM(), m), m.Path, feature.Prompts())
		})
	}
}

// eagerVLLM is vLLM without compilation, which takes minutes.
func eagerVLLM() engine.Engine {
	c := new(engineFlags).chosen()
	c.Config(server.VLLM).(*server.Config).Args = "--enforce-eager"
	return c.Engine(server.VLLMName)
}

// deployed is a plan in the form of another tool, for two models.
const deployed = `models:
  - model_id: "tiny"
    input_lengths: [8, 16]
    output_lengths: [4]
    batch_sizes: [1, 2]
    dtype: "float32"
    tensor_parallel_size: 1
    quantization: null
    model_params: 426624
    num_layers: 2
    num_heads: 4
    hidden_size: 128

  - model_id: "tiny-q4_0"
    input_lengths: [8]
    output_lengths: [4]
    batch_sizes: [2]
    dtype: "float32"
    tensor_parallel_size: 1
    max_model_len: 512
`

// A plan in the form of another tool runs in vLLM, and gives its tables.
func TestDeployedPlanRuns(t *testing.T) {
	lightTest(t)
	cmd := program(t, "run", "plan.yaml", "--engines", server.VLLMName, "--repetitions", "1",
		"--vllm-args=--enforce-eager", "--timeout", "10m")
	put(t, cmd.Dir, "plan.yaml", deployed)
	well(t, cmd)
	dir := filepath.Join(cmd.Dir, "results", "latest")
	if rows := strings.Count(good(t, "report", dir, "--format", "csv"), "\n"); rows != 6 {
		t.Errorf("summary.csv has %d lines, want a heading and 5 cells", rows)
	}
	var result struct {
		Cells []any `json:"cells"`
	}
	check(t, json.Unmarshal([]byte(good(t, "report", dir, "--json")), &result))
	if len(result.Cells) != 5 {
		t.Errorf("%d cells in the JSON", len(result.Cells))
	}
}
