package webllm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// TestWebLLM runs the engine suite on the page, and in thorough tests also in a worker.
func TestWebLLM(t *testing.T) {
	c := enginetest.Tiny(t, 24)[1]
	c.Model = tinyModel(t)
	for _, thread := range []browser.Thread{browser.PageThread, browser.WorkerThread} {
		if thread == browser.WorkerThread && !check.Slow {
			continue // TestWorkerIsMeasured covers the differences
		}
		t.Run(string(thread), func(t *testing.T) {
			c.New = func(t *testing.T) engine.Engine {
				return packed(t, Config{Settings: browser.Settings{Thread: string(thread)}})
			}
			enginetest.Run(t, c)
		})
	}
}

// on chooses an adapter.
func on(adapter string) Config { return Config{Settings: browser.Settings{Adapter: adapter}} }

// Packages are made for the adapter, which the browser is asked for once, if necessary.
func TestTargetFitsTheAdapter(t *testing.T) {
	m := tinyModel(t)
	for _, c := range []struct {
		name    string
		config  Config
		dtype   string
		device  *record.Device // if already known
		want    string
		asked   int
		kind    fault.Kind
		refusal string
	}{
		{"a software adapter for certain", on("swiftshader"), "", nil, SoftwareKernels, 0, "", ""},
		{"kernels that are given", Config{Settings: on("gpu").Settings, Kernels: GPUKernels}, "", nil,
			GPUKernels, 0, "", ""},
		// A GPU gets GPU kernels: the actual adapter decides, not the requested one.
		{"an adapter to be asked for", on("gpu"), "", nil, "", 1, "", ""},
		{"float16 on SwiftShader", on("swiftshader"), F16, &record.Device{Class: record.SoftwareAdapter},
			"", 0, fault.NoF16, "--dtype f32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			w := New(c.config, engine.Settings{DType: c.dtype})
			w.device.Store(c.device)
			w.pack = func(_ context.Context, _ models.Model, got Target, _ func(string)) (Package, error) {
				if c.want != "" && got.Kernels != c.want || got.DType != F32 {
					t.Errorf("target %+v, want %s", got, c.want)
				}
				return files.pack, nil
			}
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
			if c.asked > 0 {
				if got, err := w.Target(t.Context(), quiet); err != nil || got.Kernels != kernelsFor(*w.device.Load()) {
					t.Errorf("target %+v (%v) on %+v", got, err, *w.device.Load())
				}
			}
		})
	}
}

// Float16 is refused before trying if the adapter lacks it.
func TestF16PackageIsRefused(t *testing.T) {
	m := tinyModel(t)
	half := files.pack
	half.DType, half.NeedsF16 = F16, true
	m.DType = "q0f16"
	s, _ := idle(t)
	if s.Adapter.Class != record.SoftwareAdapter {
		t.Fatalf("the adapter is a %s", s.Adapter.Class)
	}
	w := New(on("swiftshader"), engine.Settings{})
	w.device.Store(&s.Adapter)
	w.pack = packaged(half)
	err := w.Prepare(watched(t), m, quiet)
	if fault.Of(err) != fault.NoF16 || !strings.Contains(err.Error(), "q0f16") ||
		strings.Contains(err.Error(), "--dtype") {
		t.Errorf("before a launch: error %v, want NoF16", err)
	}
	w = New(Config{Settings: on("swiftshader").Settings, Weights: F16}, engine.Settings{})
	w.device.Store(&s.Adapter)
	w.pack = packaged(half)
	if err := w.Prepare(watched(t), m, quiet); fault.Of(err) != fault.NoF16 ||
		!strings.Contains(err.Error(), "use --weights f32") {
		t.Errorf("float16 weights: error %v, want advice on --weights", err)
	}
	s.webllm.packages[keyOf(m)] = half
	if err := s.Load(watched(t), m); fault.Of(err) != fault.NoF16 {
		t.Errorf("error %v, want NoF16", err)
	}
}

func TestInvalidBundleIsRefused(t *testing.T) {
	dir := t.TempDir()
	check.Err(t, os.WriteFile(filepath.Join(dir, "package.json"),
		[]byte(`{"name": "@mlc-ai/web-llm", "version": "0.0.1"}`), 0o600))
	open := func(name string) error {
		s, err := packed(t, Config{Bundle: filepath.Join(dir, name)}).Open(watched(t), &enginetest.Probe{})
		if err == nil {
			s.Close()
		}
		return err
	}
	for text, want := range map[string]string{
		"export class Engine {} // not MLCEngine": "no class MLCEngine",
		// the page only loads from its own server
		"import 'https://example.com/other.js'; export class MLCEngine {}": "cannot be imported",
	} {
		check.Err(t, os.WriteFile(filepath.Join(dir, "bundle.js"), []byte(text), 0o600))
		err := open("bundle.js")
		enginetest.OneLine(t, err, fault.NoBundle, engine.ClassOf(err), want, "WebLLM 0.0.1")
	}
	if err := open("missing.js"); fault.Of(err) != fault.NoBundle || !strings.Contains(err.Error(), "0.0.1") {
		t.Errorf("error %v, want NoBundle", err)
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
			(fault.Of(err) != fault.BadLibrary || !strings.Contains(err.Error(), c.missing+" is missing;")) {
			t.Errorf("%v: %v", c.imports, err)
		}
	}
}

// A model that llmparity cannot read is refused before a package is made.
func TestUnreadableModelIsRefused(t *testing.T) {
	reason := fault.New(fault.UnknownArch, "", "its type")
	for _, m := range []models.Model{{Unsupported: reason}, {Unreadable: reason}} {
		if err := New(Config{}, engine.Settings{}).Accepts(t.Context(), m).Err(); !errors.Is(err, reason) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// A WebLLM without a storage would use another one.
func TestStorageThatABundleLacksIsRefused(t *testing.T) {
	const runs = "class MLCEngine {} // TVMFFIWasmSafeCall TVMFFIWasmFunctionDeleter "
	for text, lacks := range map[string][]string{ // as in 0.2.86, 0.2.83, 0.2.82, 0.2.30
		`cacheBackend "indexeddb" "opfs" "cross-origin"`: nil,
		"cacheBackend 'indexeddb' 'cross-origin'":        {record.OPFS},
		"useIndexedDBCache":                              {record.OPFS, record.CrossOrigin},
		"":                                               {record.OPFS, record.CrossOrigin, record.IndexedDB},
	} {
		file := filepath.Join(t.TempDir(), "bundle.js")
		check.Err(t, os.WriteFile(file, []byte(runs+text), 0o600))
		m := models.Model{Path: file, Model: record.Model{Format: models.WebLLM}}
		for _, storage := range append(slices.Clone(storages), "") {
			v := New(Config{Bundle: file}, engine.Settings{Storage: storage}).Accepts(t.Context(), m)
			if slices.Contains(lacks, storage) {
				enginetest.OneLine(t, v.Err(), fault.NotSupported, engine.ClassOf(v.Err()), "bundle.js", "storage "+storage)
			} else if v.Err() != nil {
				t.Errorf("%q, storage %s: %v", text, storage, v.Err())
			}
		}
	}
}

// A WebLLM too old for our libraries is refused before a package is made.
func TestOldBundleIsRefused(t *testing.T) {
	old := filepath.Join(t.TempDir(), "bundle.js")
	check.Err(t, os.WriteFile(old, []byte("class MLCEngine {} // TVMWasmPackedCFunc"), 0o600))
	for _, c := range []Config{{Bundle: old}, {Bundle: old, Library: OwnLibrary}, {Bundle: old, Kernels: MLCKernels}} {
		v := New(c, engine.Settings{}).Accepts(t.Context(), models.Model{Path: old})
		if v.Answer != engine.Refused || fault.Of(v.Err()) != fault.BadLibrary {
			t.Errorf("%+v: %+v", c, v)
		}
		other := models.Model{Path: old, Model: record.Model{Format: "webllm"}} // which may have a library that fits
		if v := New(c, engine.Settings{}).Accepts(t.Context(), other); v.Err() != nil {
			t.Errorf("%+v, package: %+v", c, v)
		}
	}
}
