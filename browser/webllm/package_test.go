package webllm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

func TestWhatBecomesOfWeightsIsReported(t *testing.T) {
	for _, c := range []struct {
		dtype, weights, kind string
		same                 record.Sameness
		dtypes, warns        string
	}{
		{F32, mlc.AsIs, "", record.SameBits, "f32", ""},
		{F32, mlc.AsIs, "Q4_0", record.SameBits, "q4_0", ""},
		{F32, mlc.AsIs, "Q6_K", record.SameBits, "q6_k", ""},
		{F32, F32, "Q8_0", record.SameValues, "f32", "dequantises them to f32"},
		{F16, mlc.AsIs, "", record.OtherValues, "f16", "rounds matrices and norms and biases"},
		{F16, mlc.AsIs, "Q4_0", record.OtherValues, "q4_0", "rounds norms and biases"},
		{F16, F16, "Q4_0", record.OtherValues, "f16", "rounds matrices and norms and biases"},
	} {
		f := tinytest.Random(t, tiny.Spec{Hidden: 256, Type: c.kind})
		p := Package{DType: c.dtype, Policy: map[string]string{}}
		stored := strings.ToLower(f.Dominant().String())
		check.Err(t, otherArithmetic(&p, f, PackageOptions(256, c.dtype, "", c.weights), stored))
		if p.Weights != c.same || p.Policy["weights_dtype"] != c.dtypes {
			t.Errorf("%+v: %q, %v", c, p.Weights, p.Policy)
		}
		text := ""
		for _, w := range p.Warnings {
			if w.Code != "weights-differ" {
				t.Errorf("%+v: %+v", c, w)
			}
			text += w.Text
		}
		if !strings.Contains(text, c.warns) || (text == "") != (c.warns == "") {
			t.Errorf("%+v: warnings %q", c, text)
		}
	}
}

// The cache identifies a package by its model's hash, so a replaced model is not cached under the old one.
func TestReplacedModelIsNotCached(t *testing.T) {
	const context = 1024
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	f, err := gguf.Open(path)
	check.Err(t, err)
	defer f.Close()
	variant := modellib.Variant{Kernels: SoftwareKernels, Sort: "partial"}
	lib, err := Compile(t.Context(), cache.Dir(os.Getenv), f, PackageOptions(context, F32, "", ""), variant,
		func(s string) { t.Log(s) })
	check.Err(t, err)
	w := New(Config{Library: lib.Path}, engine.Settings{Cache: t.TempDir()})
	m, err := models.Open(t.Context(), path, context)
	check.Err(t, err)
	text := check.Read(t, path)
	text[len(text)-1] ^= 1
	check.Err(t, os.WriteFile(path, text, 0o644))
	target := Target{Kernels: SoftwareKernels, DType: F32}
	if _, err := w.make(t.Context(), m, target, func(string) {}); fault.Of(err) != fault.BadModel ||
		!strings.Contains(err.Error(), "was replaced") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.settings.Cache, "packages", "*")); len(left) > 0 {
		t.Errorf("the cache has %v", left)
	}
	again, err := models.Open(t.Context(), path, context)
	check.Err(t, err)
	if made, err := w.make(t.Context(), again, target, func(string) {}); err != nil ||
		!strings.Contains(made.Dir, again.SHA256[:12]) {
		t.Errorf("with its new hash: %s: %v", made.Dir, err)
	}
}
