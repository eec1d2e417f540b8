//go:build slow

package transformersjs

import (
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestCrashedTab(t *testing.T) {
	e := made(t, Config{Settings: browser.Defaults()}, engine.Settings{Threads: 1})
	s, probe := loaded(t, e, enginetest.TinyModel(t))
	enginetest.CrashedTab(t, s, probe)
}

// Without WebGPU, WebAssembly runs, and a plan that asks for WebGPU fails before a load.
func TestBrowserWithoutWebGPU(t *testing.T) {
	for _, backend := range []string{Wasm, WebGPU} {
		c := Config{Settings: browser.Defaults(), Backend: backend}
		c.Launch.Flags = []string{"disable-software-rasterizer"}
		e := made(t, c, engine.Settings{Threads: 1})
		if backend == WebGPU {
			_, err := e.Open(limited(t), &enginetest.Probe{})
			enginetest.OneLine(t, err, fault.NoAdapter, record.SetUp, "no WebGPU adapter")
			continue
		}
		s, _ := loaded(t, e, enginetest.TinyModel(t))
		if got, _ := ids(t, s, "The", 4); len(got) != 4 {
			t.Errorf("ids %v", got)
		}
	}
}
