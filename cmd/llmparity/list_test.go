package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
)

// The tiny model's package stands for a model of the catalogue, in a mirror and in the store.
func TestListKnowsStoreAndMirror(t *testing.T) {
	lightTest(t)
	const id = "SmolLM2-135M-Instruct-q0f32-MLC"
	own := t.TempDir()
	t.Setenv("LLMPARITY_CACHE", own)
	mirror := mirrored(t, id)
	models := decoded[[]catalogue.Listed](t, good(t, "model", "list", "SMOLLM2-135M", "--json", "--mirror", mirror))
	if len(models) != 2 || models[0].ID != "SmolLM2-135M-Instruct-q0f16-MLC" || !models[0].F16 ||
		models[0].WeightsB != nil ||
		models[0].Stored {
		t.Errorf("%+v", models)
	}
	if m := models[1]; m.ID != id || m.F16 || m.WeightsB == nil || *m.WeightsB != 4*426624 || m.Stored ||
		m.VRAMMB < 100 {
		t.Errorf("%+v", m)
	}
	put(t, mirror, "mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_86/base/SmolLM2-135M-Instruct-q0f32_cs1k-webgpu.wasm",
		"\x00asm\x01\x00\x00\x00")
	known, err := builtInCatalogue()
	check(t, err)
	e, err := known.Find(id)
	check(t, err)
	p, err := catalogue.Fetch(t.Context(), e, catalogue.FetchOptions{Store: catalogue.Store(own), Mirror: mirror}, nil)
	check(t, err)
	models = decoded[[]catalogue.Listed](t, good(t, "model", "list", id, "--json"))
	all, weights := p.Bytes()
	if m := models[0]; len(models) != 1 || !m.Stored || m.StoredB != all || *m.WeightsB != weights ||
		m.Source != mirror {
		t.Errorf("%+v", models)
	}
}

// mirrored is a mirror with the tiny model's package under the name of a model of the catalogue.
func mirrored(t *testing.T, id string) string {
	t.Helper()
	mirror := t.TempDir()
	place := filepath.Join(mirror, "mlc-ai", id, "resolve", "main")
	_, err := mlc.Write(t.Context(), tinyOf(t).Path, place, mlc.Options{})
	check(t, err)
	return mirror
}

func TestListIsSortedAndAligned(t *testing.T) {
	lightTest(t)
	t.Setenv("LLMPARITY_CACHE", filepath.Join(t.TempDir(), "none"))
	lines := strings.Split(strings.TrimSpace(good(t, "model", "list")), "\n")
	if len(lines) < 100 {
		t.Fatalf("%d lines", len(lines))
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
