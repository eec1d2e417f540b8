package browser

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

func TestLossOfAProcessFailsTheCallWithItsClass(t *testing.T) {
	for _, x := range []struct {
		role  string
		class record.Class
		say   string
	}{
		{"renderer", record.Crash, "renderer"},
		{"gpu-process", record.DeviceLost, "device is lost"},
		{"browser", record.Crash, "browser ended"},
	} {
		t.Run(x.role, func(t *testing.T) {
			c, m := tinyModel(t)
			s, _ := fresh(t, c)
			if err := s.Load(watched(t), m); err != nil {
				t.Fatal(err)
			}
			roles, err := s.tab.roles(watched(t))
			if err != nil {
				t.Fatal(err)
			}
			var killed time.Time
			r := engine.Request{Prompt: "the quick brown fox", MaxTokens: m.Context / 2, IgnoreEOS: true}
			_, err = s.Generate(watched(t), r, func(tok record.Token) {
				for pid, role := range roles {
					if tok.Index == 2 && role == x.role {
						killed = time.Now()
						if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
							t.Error(err)
						}
					}
				}
			})
			t.Logf("%v after the kill: %v", time.Since(killed), err)
			if err == nil || engine.ClassOf(err) != x.class || !strings.Contains(err.Error(), x.say) {
				t.Errorf("error %v of class %s, want one of class %s that says %q", err, engine.ClassOf(err), x.class, x.say)
			}
			// From here on every call fails in the same way, and none hangs.
			if err := s.Unload(watched(t)); engine.ClassOf(err) != x.class {
				t.Errorf("Unload: %v, want class %s", err, x.class)
			}
		})
	}
}

func TestGPUErrorThatNobodyCapturedFailsTheSession(t *testing.T) {
	c, _ := tinyModel(t)
	s, _ := fresh(t, c)
	// WebGPU reports such an error to nobody's promise; the call goes on.
	_, err := call[any](watched(t), s.tab, `navigator.gpu.requestAdapter().then((a) => a.requestDevice()).then(async (d) => {
		d.createBuffer({ size: 2 ** 40, usage: GPUBufferUsage.STORAGE });
		await d.queue.onSubmittedWorkDone();
		await new Promise(() => {});
	})`)
	if err == nil || !strings.Contains(err.Error(), "GPUValidationError") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with GPUValidationError", err)
	}
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]record.Class{
		"RangeError: Array buffer allocation failed":                                         record.OOM,
		"RangeError: WebAssembly.Memory(): could not allocate memory":                        record.OOM,
		"GPUOutOfMemoryError":                                                                record.OOM,
		"DeviceLostError: The WebGPU device was lost while loading the model.":               record.DeviceLost,
		"TypeError: Failed to fetch":                                                         record.Download,
		"RuntimeError: unreachable":                                                          record.Crash,
		"RuntimeError: memory access out of bounds":                                          record.Crash,
		"Error: Cannot find function create_tir_paged_kv_cache":                              record.Other,
		"ContextWindowSizeExceededError: Prompt tokens exceed context window size":           record.Other,
		"CompileError: WebAssembly.instantiate(): expected magic word 00 61 73 6d, found 74": record.Other,
	} {
		if got := classify(text); got != want {
			t.Errorf("%s: class %s, want %s", text, got, want)
		}
	}
}
