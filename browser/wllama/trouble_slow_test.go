//go:build slow

package wllama

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestCrashedTab(t *testing.T) {
	s, probe := open(t, with(WASM, 1))
	enginetest.Load(t, s, enginetest.TinyModel(t))
	enginetest.CrashedTab(t, s, probe)
}

// Without WebGPU, WebAssembly runs; where WebGPU was asked for, that is a fallback.
func TestBrowserWithoutWebGPU(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	for _, backend := range []string{Auto, WebGPU} {
		e := with(backend, 1)
		e.config.Launch.Flags = []string{"disable-software-rasterizer"}
		s, probe := open(t, e)
		enginetest.Load(t, s, c.Model)
		says(t, s, c.Prompt, c.Expected)
		w, err := engine.Asked(*probe.Device(), false)
		if backend == WebGPU {
			enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for webgpu", "runs on cpu")
		} else if w != nil || err != nil {
			t.Errorf("%+v, %v", w, err)
		}
	}
}
