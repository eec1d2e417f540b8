package webllm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

func TestLibrariesAreDescribed(t *testing.T) {
	ours := mlc.Library{Metadata: mlc.Metadata{Own: &mlc.Own{Variant: modellib.Variant{Kernels: "gpu", Sort: "full"}}}}
	for _, c := range []struct {
		given string
		lib   mlc.Library
		want  record.Library
	}{
		{"https://raw.githubusercontent.com/mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_80/X-webgpu.wasm",
			mlc.Library{},
			record.Library{Maker: MLC, Variant: "v0_2_80/X-webgpu.wasm", Kernels: MLCKernels}},
		{"https://github.com/mlc-ai/binary-mlc-llm-libs/raw/main/web-llm-models/v0_2_80/X-webgpu.wasm?a=b",
			mlc.Library{},
			record.Library{Maker: MLC, Variant: "v0_2_80/X-webgpu.wasm", Kernels: MLCKernels}},
		{"https://example.com/mlc-ai/binary-mlc-llm-libs/v0/X.wasm", mlc.Library{},
			record.Library{Variant: "X.wasm"}},
		{"/m/mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_80/X.wasm", mlc.Library{},
			record.Library{Maker: MLC, Variant: "v0_2_80/X.wasm", Kernels: MLCKernels}},
		{"libs/mlc-ai/X.wasm", mlc.Library{}, record.Library{Variant: "X.wasm"}},
		{"https://example.com/lib.wasm", ours,
			record.Library{Maker: record.Llmparity, Variant: "gpu kernels, full sort", Kernels: "gpu"}},
	} {
		c.want.Usual, c.want.Source = MLC, c.given
		if got := Describe(c.given, c.lib); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.given, got, c.want)
		}
	}
}

// A library of others runs a model by itself only if it fits, also in what its metadata leaves out, and if no other is
// asked for. Here it is ours with MLC's kernels, but without our mark.
func TestAutoTakesMLCsLibraryIfItFits(t *testing.T) {
	path, root := filepath.Join(t.TempDir(), "tiny.gguf"), cache.Dir(os.Getenv)
	check.Err(t, tiny.WriteFile(path))
	f, err := gguf.Open(path)
	check.Err(t, err)
	defer f.Close()
	options, say := PackageOptions(window, F32, "", ""), func(s string) { t.Log(s) }
	shape, err := mlc.Shape(f, options)
	check.Err(t, err)
	built, err := Compile(t.Context(), root, f, options, modellib.Variant{Kernels: MLCKernels, Sort: "partial"}, say)
	check.Err(t, err)
	mark := strings.NewReplacer(`"llmparity"`, `"unrelated"`)
	epsilon := strings.NewReplacer("1.000000e-05f", "1.000000e-06f")
	mirror := func(text string) string {
		return check.Tree(t, t.TempDir(), map[string]string{
			"mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_80/Any.wasm": text})
	}
	own := string(check.Read(t, built.Path))
	theirs := mark.Replace(own)
	const mlcs, ours = "MLC's (v0_2_80/Any.wasm)", "llmparity's (software kernels, partial sort)"
	for name, c := range map[string]struct {
		mirror string
		config Config
		want   string
	}{
		"fits":              {mirror(theirs), Config{}, mlcs},
		"none":              {t.TempDir(), Config{Library: AutoLibrary}, ours},
		"ours in a mirror":  {mirror(own), Config{}, ours},
		"another epsilon":   {mirror(epsilon.Replace(theirs)), Config{}, ours},
		"own is asked for":  {mirror(theirs), Config{Library: OwnLibrary}, ours},
		"kernels are asked": {mirror(theirs), Config{Kernels: SoftwareKernels}, ours},
	} {
		w := New(c.config, engine.Settings{Cache: root, Mirror: c.mirror})
		_, l, err := w.library(t.Context(), f, options, shape, Bundle{},
			Target{Kernels: SoftwareKernels, DType: F32}, say)
		if err != nil || l.String() != c.want {
			t.Errorf("%s: %s, %v; want %s", name, &l, err, c.want)
		}
	}
}
