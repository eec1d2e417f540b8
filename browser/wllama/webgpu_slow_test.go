//go:build slow

package wllama

import (
	"testing"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// lavapipe is the one adapter without a GPU that has shader-f16.
func lavapipe(t *testing.T, backend string) *Engine {
	t.Helper()
	_, err := find.Lavapipe()
	check.Err(t, err)
	e := with(backend, 1)
	e.config.Adapter = string(browser.Lavapipe)
	return e
}

// With WebGPU the ids are the same, and the ledger of wllama's worker splits its buffers.
func TestWebGPU(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	s, probe := open(t, lavapipe(t, Auto))
	enginetest.Load(t, s, c.Model)
	g := says(t, s, c.Prompt, c.Expected)
	if got := probe.Engine().Policy; got["backend"] != WebGPU || got["gpu_layers"] != "3 of 3" {
		t.Errorf("policy: %v", got)
	}
	d := probe.Device()
	if _, err := engine.Asked(*d, false); err != nil || d.Class != record.SoftwareAdapter {
		t.Errorf("device %+v: %v", d, err)
	}
	const kv = 2 * 2 * 64 * 4 // bytes a token
	got := probe.Figures(t, browser.MethodLedger, "page")
	t.Log(got)
	sum := got["weights_bytes"] + got["kv_reserved_bytes"] + got["workspaces_bytes"] + got["unattributed_bytes"]
	if held := float64(len(g.Usage.PromptIDs) + len(c.Expected) - 1); sum != got["live_bytes"] ||
		got["kv_used_bytes"] != held*kv || got["kv_reserved_bytes"] < 1024*kv || got["weights_bytes"] < 1<<20 {
		t.Errorf("ledger: %v", got)
	}
	check.Err(t, s.Unload(t.Context()))
	for _, source := range probe.Attached() {
		if source.Describe().Method == browser.MethodLedger {
			t.Error("the ledger is sampled without a model")
		}
	}
}

func TestWebGPUConformance(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.New = func(t *testing.T) engine.Engine { return lavapipe(t, WebGPU) }
	enginetest.Run(t, c)
}
