package browser

import (
	"context"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// What is made hangs on the adapter; the browser is asked for it where it can't be known, and once.
func TestTargetFitsTheAdapter(t *testing.T) {
	_, m := tinyModel(t)
	for _, c := range []struct {
		name    string
		config  Config
		want    string
		asked   int
		kind    fault.Kind
		refusal string
	}{
		{"a software adapter for certain", Config{Adapter: SwiftShader}, SoftwareKernels, 0, "", ""},
		{"kernels that are given", Config{Adapter: GPU, Kernels: GPUKernels}, GPUKernels, 0, "", ""},
		// With a GPU this gives GPU kernels; what the adapter is decides, not what was hoped for.
		{"an adapter to be asked for", Config{Adapter: GPU}, "", 1, "", ""},
		{"float16 on SwiftShader", Config{Adapter: SwiftShader, DType: F16}, "", 1, fault.NoF16, "--dtype f32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			c.config.Package = func(_ context.Context, _ engine.Model, got Target, _ func(string)) (Package, error) {
				if c.want != "" && got.Kernels != c.want || got.DType != F32 {
					t.Errorf("made for %+v, want %s", got, c.want)
				}
				return files.pack, nil
			}
			w := New(c.config)
			for range 2 {
				clear(w.packages)
				err := w.Prepare(watched(t), m, func(string) { asked++ })
				if fault.Of(err) != c.kind || c.refusal != "" && !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("error %v, want class %q with %q", err, c.kind, c.refusal)
				}
			}
			if asked != c.asked {
				t.Errorf("the browser was asked %d times, want %d", asked, c.asked)
			}
			if c.asked > 0 && c.kind == "" {
				if got, err := w.Target(t.Context(), func(string) {}); err != nil ||
					got.Kernels != kernelsFor(*w.device) {
					t.Errorf("made for %+v (%v) on %+v", got, err, *w.device)
				}
			}
		})
	}
}

func TestLibraryForAnotherAdapterIsReported(t *testing.T) {
	c, m := tinyModel(t)
	other := files.pack
	other.Library.Kernels = GPUKernels // what it says of itself: the kernels are what they were
	c.Adapter = SwiftShader
	s, probe := idle(t)
	s.webllm.config.Package = packaged(other)
	warned := len(probe.Warnings())
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}
	if w := probe.Warnings()[warned:]; len(w) != 1 || w[0].Code != "library-for-another-adapter" ||
		!strings.Contains(w[0].Text, "gpu kernels") {
		t.Errorf("warnings %+v", w)
	}
	// Float16 is not tried where the adapter has none.
	half := files.pack
	half.DType = F16
	c.Package = packaged(half)
	m.DType = "q0f16"
	err := New(c).Prepare(watched(t), m, func(string) {})
	if fault.Of(err) != fault.NoF16 || !strings.Contains(err.Error(), "q0f16") ||
		strings.Contains(err.Error(), "--dtype") {
		t.Errorf("before a launch: error %v, want NoF16", err)
	}
	if s, _ = idle(t); s.device.Class != record.SoftwareAdapter {
		t.Fatalf("the adapter is a %s", s.device.Class)
	}
	s.webllm.config.Package = packaged(half)
	if err := s.Load(watched(t), m); fault.Of(err) != fault.NoF16 {
		t.Errorf("error %v, want NoF16", err)
	}
}

func TestBundleFitsALibrary(t *testing.T) {
	for _, c := range []struct {
		imports []string
		missing string
	}{
		{[]string{"TVMFFIWasmSafeCall", "TVMFFIWasmFunctionDeleter", "fd_write", "anything"}, ""},
		// up to WebLLM 0.2.79
		{[]string{"TVMWasmPackedCFunc", "TVMWasmPackedCFuncFinalizer"}, "TVMWasmPackedCFuncFinalizer"},
		{[]string{"TVMFFIWasmSafe"}, "TVMFFIWasmSafe"},
	} {
		err := Bundle{}.Fits(c.imports)
		if c.missing == "" && err != nil || c.missing != "" &&
			(fault.Of(err) != fault.BadLibrary || !strings.Contains(err.Error(), "offer "+c.missing+";")) {
			t.Errorf("%v: %v", c.imports, err)
		}
	}
}

func TestLibrariesAreNamed(t *testing.T) {
	for want, l := range map[string]Library{
		"ours (software kernels, partial sort)": {Origin: Ours, Detail: "software kernels, partial sort"},
		"given":                                 {Origin: Given},
	} {
		if l.String() != want {
			t.Errorf("%s, want %s", l, want)
		}
	}
	if w := (Library{}).otherAdapter(record.Device{Class: record.GPU}); w != nil {
		t.Errorf("a library that doesn't say what it is for: %v", w)
	}
}
