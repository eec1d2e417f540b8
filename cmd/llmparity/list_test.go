package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/catalogue"
	"llmparity/internal/mlc"
	"llmparity/internal/tiny"
)

// The tiny model's package stands for a model of the catalogue, in a mirror and in the store.
func TestListKnowsStoreAndMirror(t *testing.T) {
	const id = "SmolLM2-135M-Instruct-q0f32-MLC"
	cmd := program(t, "model", "list", "SMOLLM2-135M", "--json", "--mirror", "mirror")
	own := filepath.Join(cmd.Dir, "cache")
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+own)
	gguf, mirror := filepath.Join(cmd.Dir, "tiny.gguf"), filepath.Join(cmd.Dir, "mirror")
	check(t, tiny.WriteFile(gguf))
	if _, err := mlc.Write(t.Context(), gguf, filepath.Join(mirror, "mlc-ai", id, "resolve", "main"),
		mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	models := listOf(t, cmd.Args[1:], cmd.Dir, own)
	if len(models) != 2 || models[0].ID != "SmolLM2-135M-Instruct-q0f16-MLC" || !models[0].F16 ||
		models[0].WeightsB != nil ||
		models[0].Stored {
		t.Errorf("%+v", models)
	}
	if m := models[1]; m.ID != id || m.F16 || m.WeightsB == nil || *m.WeightsB != 4*426624 || m.Stored ||
		m.VRAMMB < 100 {
		t.Errorf("%+v", m)
	}
	library := filepath.Join(mirror, "mlc-ai", "binary-mlc-llm-libs", "main", "web-llm-models", "v0_2_86", "base",
		"SmolLM2-135M-Instruct-q0f32_cs1k-webgpu.wasm")
	check(t, os.MkdirAll(filepath.Dir(library), 0o755))
	check(t, os.WriteFile(library, []byte("\x00asm\x01\x00\x00\x00"), 0o644))
	known, err := builtInCatalogue()
	check(t, err)
	e, err := known.Find(id)
	check(t, err)
	p, err := catalogue.Fetch(t.Context(), e, catalogue.Options{Store: catalogue.Store(own), Mirror: mirror}, nil)
	check(t, err)
	models = listOf(t, []string{"model", "list", id, "--json"}, cmd.Dir, own)
	all, weights := p.Bytes()
	if m := models[0]; len(models) != 1 || !m.Stored || m.StoredB != all || *m.WeightsB != weights ||
		m.Source != mirror {
		t.Errorf("%+v", models)
	}
}

// listOf returns the models that a command lists with another cache.
func listOf(t *testing.T, args []string, dir, own string) (models []catalogue.Listed) {
	t.Helper()
	cmd := program(t, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+own)
	stdout, stderr, code := output(t, cmd)
	if err := json.Unmarshal([]byte(stdout), &models); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %v\n%s", code, err, stderr)
	}
	return models
}

func TestListIsSortedAndAligned(t *testing.T) {
	cmd := program(t, "model", "list")
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+filepath.Join(cmd.Dir, "none"))
	stdout, stderr, code := output(t, cmd)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || stderr != "" || len(lines) < 100 {
		t.Fatalf("exit code %d, %d lines\n%s", code, len(lines), stderr)
	}
	column := strings.Index(lines[0], "SHADER-F16")
	ids := []string{}
	for _, line := range lines[1:] {
		ids = append(ids, strings.ToLower(strings.Fields(line)[0]))
		if len(line) > 100 || line[column-1] != ' ' || line[column] == ' ' {
			t.Errorf("not aligned: %s", line)
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("%v", ids)
	}
}

func TestListWithoutMirror(t *testing.T) {
	// A mirror that isn't there is no reason not to list.
	stdout, stderr, code := output(t, program(t, "model", "list", "phi-2", "--mirror", "http://127.0.0.1:1"))
	if code != 0 || !strings.Contains(stdout, "phi-2-q4f16_1-MLC") || !strings.Contains(stderr, "cannot be reached") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
