package wllama

import (
	"fmt"
	"testing"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// In Firefox, too, threads or none, the ids are those of the reference, and the same memory is seen.
func TestFirefox(t *testing.T) {
	if _, err := find.Chrome("firefox"); err != nil {
		t.Skip("no Firefox here: scripts/setup firefox")
	}
	c := enginetest.Tiny(t, 32)[1]
	for _, threads := range []int{1, 2} {
		if threads > 1 && !check.Slow { // a load hung once, on a machine with other browsers
			continue
		}
		t.Run(fmt.Sprintf("%d threads", threads), func(t *testing.T) {
			e := with(WASM, threads)
			e.config.Chrome = "firefox"
			s, probe := open(t, e)
			enginetest.Load(t, s, c.Model)
			says(t, s, c.Prompt, c.Expected)
			wasm := probe.Figures(t, browser.MethodWasm, "page")
			if d := probe.Device(); d.Class != record.CPU || wasm["memory_bytes"] < 128<<20 {
				t.Errorf("device %+v, WebAssembly %v", d, wasm)
			}
			for _, w := range probe.Warnings() {
				t.Errorf("warning: %+v", w)
			}
		})
	}
}
