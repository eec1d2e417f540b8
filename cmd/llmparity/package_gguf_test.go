package main

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// quantised is a small model whose matrices are Q4_0.
var quantised = tiny.Spec{Hidden: 256, Heads: 4, KVHeads: 2, HeadDim: 64, Type: "Q4_0", Seed: 2}

// withoutAMX returns a llama-server that keeps to the weights' own layout. Some virtual machines list AMX, which it
// would use otherwise, and cannot run it.
func withoutAMX(t *testing.T) string {
	t.Helper()
	return put(t, t.TempDir(), "llama-server", "#!/bin/sh\nexec '"+llamaServer(t)+"' \"$@\" --no-repack\n")
}

// sameFile checks the record of a run of a package that engines load in different formats.
func sameFile(t *testing.T, dir, stdout string, engines ...string) {
	t.Helper()
	r := recorded(t, dir)
	seen := map[string]bool{}
	for _, a := range r.Attempts {
		e, ok := a.Engine()
		c := r.Cells[a.Cell-1]
		if !ok || c.Model.Format != models.WebLLM || c.Model.DType != "q4f32_1" ||
			e.Weights != record.SameBits ||
			(e.Policy["model_file"] == "GGUF (Q4_0) of the package") != (e.Name == "llamacpp") {
			t.Errorf("%s %s: %q, %v", e.Name, c.Model.DType, e.Weights, e.Policy)
		}
		seen[e.Name] = true
	}
	if len(seen) != len(engines) {
		t.Errorf("%v ran, want %v", seen, engines)
	}
	if both := len(engines) > 1; strings.Contains(stdout, record.SameBits.String()) != both {
		t.Errorf("the weights are compared in the answer: %v wanted\n%s", both, stdout)
	}
}

// A package becomes a GGUF in the cache, once, for engines that do not run packages.
func TestNativeEngineRunsPackage(t *testing.T) {
	lightTest(t)
	args := []string{"run", "--model", "package", "--engines", "llamacpp", "--max-tokens", "4", "--repetitions", "1",
		"--input-len", "20", "--llama-server", withoutAMX(t)}
	cmd := program(t, append(args, "--dry-run")...)
	cmd.Env = append(cmd.Environ(), cache.Variable+"="+t.TempDir())
	in, dir := filepath.Join(cmd.Dir, "in.gguf"), filepath.Join(cmd.Dir, "package")
	check(t, tiny.WriteRandomFile(t.Context(), in, quantised))
	_, err := mlc.Write(t.Context(), in, dir, mlc.Options{Weights: mlc.AsIs})
	check(t, err)
	well(t, cmd, "MiB")
	for i, converts := range []bool{true, false} {
		stdout, stderr := well(t, resumed(cmd, args...))
		if strings.Contains(stderr, "converting the package to a GGUF, once") != converts {
			t.Errorf("run %d: %s", i, stderr)
		}
		sameFile(t, cmd.Dir, stdout, "llamacpp")
	}
}

// Every command refuses a damaged package as WebLLM does, or says that it is damaged.
func TestDamagedPackageIsRefusedEverywhere(t *testing.T) {
	lightTest(t)
	in, dir := filepath.Join(t.TempDir(), "in.gguf"), filepath.Join(t.TempDir(), "package")
	check(t, tiny.WriteFile(in))
	_, err := mlc.Write(t.Context(), in, dir, mlc.Options{})
	check(t, err)
	if i := infoOf(t, dir); i.Damaged != "" || i.Engines["llamacpp"].Can == "" {
		t.Errorf("intact: %+v", i)
	}
	shard := "params_shard_0.bin"
	b := []byte(readFile(t, filepath.Join(dir, shard)))
	b[1000] ^= 0x80 // a sign
	put(t, dir, shard, string(b))
	says := shard + " is damaged: its MD5 is "
	stdout, stderr := ends(t, program(t, "model", "convert", dir, "--to", "gguf"), fault.BadModel, says)
	if strings.Contains(stdout+stderr, record.SameBits.String()) {
		t.Errorf("%s%s", stdout, stderr)
	}
	cmd := program(t, "run", "--model", dir, "--engines", "llamacpp", "--max-tokens", "4", "--repetitions", "1",
		"--input-len", "20", "--llama-server", withoutAMX(t))
	ends(t, cmd, fault.BadModel, says)
	well(t, program(t, "model", "info", dir), "damaged        "+says, "the package is damaged")
	for name, e := range infoOf(t, dir).Engines {
		if e.Can != "" || e.Unknown != "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
