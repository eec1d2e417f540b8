package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
)

// WebLLM's weights in the cache are damaged, with their checksums put right: two values of the last norm change places.
// The tokens stay the same, and the engines agree on them. The scores show it, and the gate fails.
func TestWrongWeightsFailTheGate(t *testing.T) {
	browserTest(t)
	t.Parallel()
	own := ownCache(t)
	run := func() (string, int) {
		cmd := oneLaunch(t, "webllm, llamacpp")
		plan := filepath.Join(cmd.Dir, "one.yaml")
		put(t, cmd.Dir, "one.yaml", readFile(t, plan)+"gate: {peak_pss_mb: {max: 9000}}\n")
		cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+own)
		stdout, stderr, code := output(t, cmd)
		return stdout + stderr, code
	}
	said, code := run()
	mentions(t, said, "Output: Same tokens, same scores.")
	if code != 0 {
		t.Fatalf("intact: exit code %d: %s", code, said)
	}
	swapNorm(t, filepath.Join(own, "packages"))
	said, code = run()
	mentions(t, said, "Output: Wrong scores: WebLLM.", "8 of 8 identical", "same scores as llmparity's reference implementation",
		"more than float32 explains (0.001)")
	if code != fault.Gate.ExitCode() {
		t.Errorf("damaged: exit code %d: %s", code, said)
	}
}

// ownCache is a cache folder with everything that is built here, and without packages.
func ownCache(t *testing.T) string {
	t.Helper()
	built, own := cache.Dir(os.Getenv), t.TempDir()
	entries, err := os.ReadDir(built)
	check(t, err)
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && name != "packages" && name != "models" {
			check(t, os.Symlink(filepath.Join(built, name), filepath.Join(own, name)))
		}
	}
	return own
}

// swapNorm swaps the first two values of the last norm in every package of a folder.
func swapNorm(t *testing.T, packages string) {
	t.Helper()
	caches, err := filepath.Glob(filepath.Join(packages, "*", "tensor-cache.json"))
	check(t, err)
	if len(caches) == 0 {
		t.Fatal("no package in the cache")
	}
	type tensor struct {
		Name   string `json:"name"`
		Offset int    `json:"byteOffset"`
	}
	for _, path := range caches {
		var whole map[string]any
		var list struct {
			Records []struct {
				Path    string   `json:"dataPath"`
				Records []tensor `json:"records"`
			} `json:"records"`
		}
		text := []byte(readFile(t, path))
		check(t, json.Unmarshal(text, &whole))
		check(t, json.Unmarshal(text, &list))
		for i, shard := range list.Records {
			file := filepath.Join(filepath.Dir(path), shard.Path)
			values := []byte(readFile(t, file))
			for _, r := range shard.Records {
				if r.Name == "model.norm.weight" {
					two := values[r.Offset : r.Offset+8]
					copy(two, append(append([]byte{}, two[4:]...), two[:4]...))
				}
			}
			check(t, os.WriteFile(file, values, 0o644))
			whole["records"].([]any)[i].(map[string]any)["md5sum"] = fmt.Sprintf("%x", md5.Sum(values))
		}
		text, err := json.Marshal(whole)
		check(t, err)
		check(t, os.WriteFile(path, text, 0o644))
	}
}

// Of a model that is neither built in nor random, the reference implementation scores the text on request only.
func TestReferenceChecksOtherModels(t *testing.T) {
	browserTest(t)
	t.Parallel()
	model := filepath.Join(t.TempDir(), "named.gguf")
	rewrite(t, tinyOf(t).Path, model, gguf.Entry{Key: "general.name", Value: "A Model"})
	for _, asked := range []bool{false, true} {
		cmd := oneLaunch(t, "llamacpp", "--model", model, fmt.Sprintf("--check-reference=%v", asked))
		well(t, cmd)
		r := recorded(t, cmd.Dir)
		anchored := slices.ContainsFunc(r.Scorings, func(a *record.Attempt) bool { return a.Scoring.Anchored() })
		c := compare.Runs(r).Cells[0]
		if anchored != asked || c.Scores.Known() != asked || c.Scores.Differs() {
			t.Errorf("asked: %v, anchored: %v, %+v", asked, anchored, c.Scores)
		}
	}
}
