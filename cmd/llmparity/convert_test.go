package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/tiny"
	"llmparity/internal/whole"
)

func TestConvertKeepsValues(t *testing.T) {
	cmd := program(t, "model", "convert", "in.gguf", "--to", "gguf", "-o", "out")
	check(t, tiny.WriteFile(filepath.Join(cmd.Dir, "in.gguf")))
	stdout, stderr, code := output(t, cmd)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	// The tiny model is float32 already: what is written is what was read, to the byte.
	if want := filepath.Join("out", "in-f32.gguf") + "  " + tiny.SHA256; strings.TrimSpace(stdout) != want {
		t.Errorf("%s, want %s", stdout, want)
	}
	entries, err := os.ReadDir(filepath.Join(cmd.Dir, "out"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v: one file is wanted", entries, err)
	}
}

// The alignment of the source file is not copied.
func TestConvertedFilesAreReadable(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "out.gguf")
	check(t, tiny.WriteFile(in))
	f, err := gguf.Open(in)
	check(t, err)
	defer f.Close()
	aligned := append(slices.Clone(f.Metadata),
		gguf.Entry{Key: "general.alignment", Value: uint32(64)},
		gguf.Entry{Key: "general.quantization_version", Value: uint32(2)})
	check(t, whole.Write(out, func(w io.Writer) error {
		return gguf.Write(w, gguf.AsFloat32(aligned), f.Unquantised())
	}))
	if _, err := model.Open(out, 0); err != nil {
		t.Error(err)
	}
}

func TestConvertWritesPackageWithLibrary(t *testing.T) {
	cmd := program(t, "model", "convert", "in.gguf", "--to", "webllm", "--context", "100") // less than a prefill chunk
	check(t, tiny.WriteFile(filepath.Join(cmd.Dir, "in.gguf")))
	well(t, cmd)
	for _, name := range []string{"mlc-chat-config.json", "params_shard_0.bin", "lib.wasm"} {
		if info, err := os.Stat(filepath.Join(cmd.Dir, "in-webllm-c100", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConvertWritesRequestedPackage(t *testing.T) {
	cmd := program(t, "model", "convert", "in.gguf", "--to", "webllm", "--dtype", "f16", "--kernels", "gpu", "--sort",
		"full")
	check(t, tiny.WriteFile(filepath.Join(cmd.Dir, "in.gguf")))
	well(t, cmd)
	made, err := mlc.OpenPackage(filepath.Join(cmd.Dir, "in-webllm-f16"))
	check(t, err)
	lib, err := mlc.OpenLibrary(made.Library)
	check(t, err)
	if err := lib.MatchesPackage(made); err != nil || made.Quantization != "q0f16" || lib.Own == nil ||
		lib.Own.String() != "gpu kernels, full sort" {
		t.Errorf("%v: package %s, library %v", err, made.Quantization, lib.Own)
	}
	// What can be done with either depends on the adapter.
	for _, path := range []string{filepath.Join(cmd.Dir, "in-webllm-f16"), made.Library} {
		if can := infoOf(t, path).Engines["webllm"].Can; !strings.Contains(
			can, "if the WebGPU adapter has shader-f16") {
			t.Errorf("%s: %q", path, can)
		}
	}
}

func TestConvertErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		kind fault.Kind
		want string
	}{
		{[]string{"model", "convert", "in.gguf"}, fault.Usage, "webllm or gguf"},
		{[]string{"model", "convert", "in.gguf", "--to", "gguf", "--context", "64"}, fault.Usage, "--context"},
		{[]string{"model", "convert", "in.gguf", "--to", "gguf", "--dtype", "f16"}, fault.Usage, "--dtype"},
		{[]string{"model", "convert", "in.gguf", "--to", "webllm", "--context", "-1"}, fault.Usage, "--context -1"},
		{[]string{"model", "convert", "missing.gguf", "--to", "gguf"}, fault.BadModel, "missing.gguf"},
		{[]string{"model", "convert", "in.gguf", "--to", "gguf", "-o", "/dev/null/x"}, fault.Unwritable, "-o"},
		{[]string{"model", "convert", "in.gguf", "--to", "webllm", "-o", "/dev/null/x"}, fault.Unwritable, "-o"},
	} {
		cmd := program(t, c.args...)
		check(t, tiny.WriteFile(filepath.Join(cmd.Dir, "in.gguf")))
		// Without a compiler: what is wrong is told before one is looked for.
		cmd.Env = append(cmd.Env, "LLMPARITY_EMCC=/nonexistent/emcc",
			"LLMPARITY_CACHE="+filepath.Join(cmd.Dir, "cache"))
		refusal(t, cmd, c.kind, c.want)
	}
}

// Models that run refuses are refused here too, and nothing is written.
func TestConvertToGGUFRefusesAdapters(t *testing.T) {
	for name, c := range map[string]struct {
		change []gguf.Entry
		want   string
	}{
		"gemma":     {[]gguf.Entry{{Key: "general.architecture", Value: "gemma3"}}, "gemma3"},
		"adapter":   {[]gguf.Entry{{Key: "general.type", Value: "adapter"}}, "LoRA"},
		"part":      {[]gguf.Entry{{Key: "split.count", Value: uint16(3)}}, "one of 3 parts"},
		"tokenizer": {[]gguf.Entry{{Key: "tokenizer.ggml.pre", Value: "falcon3"}}, "falcon3"},
	} {
		cmd := program(t, "model", "convert", "in.gguf", "--to", "gguf", "-o", "out")
		changed(t, filepath.Join(cmd.Dir, "in.gguf"), c.change)
		refusal(t, cmd, fault.UnknownArch, c.want)
		if _, err := os.Stat(filepath.Join(cmd.Dir, "out")); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}

// changed writes the tiny model with other metadata.
func changed(t *testing.T, path string, entries []gguf.Entry) {
	t.Helper()
	plain := path + ".plain"
	check(t, tiny.WriteFile(plain))
	rewrite(t, plain, path, entries...)
}

// rewrite copies a model with changed or added metadata.
func rewrite(t *testing.T, from, to string, entries ...gguf.Entry) {
	t.Helper()
	f, err := gguf.Open(from)
	check(t, err)
	defer f.Close()
	metadata := slices.Clone(f.Metadata)
	for _, e := range entries {
		i := slices.IndexFunc(metadata, func(old gguf.Entry) bool { return old.Key == e.Key })
		if i < 0 {
			metadata = append(metadata, e)
		} else {
			metadata[i] = e
		}
	}
	check(t, whole.Write(to, func(w io.Writer) error { return gguf.Write(w, metadata, f.Unquantised()) }))
}
