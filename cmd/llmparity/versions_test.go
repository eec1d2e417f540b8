//go:build slow

package main

import (
	"slices"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
)

// Supported versions of WebLLM generate the reference's tokens; older ones are refused.
func TestVersionsOfWebLLM(t *testing.T) {
	c := enginetest.Tiny(t, 64)[0]
	for _, version := range []string{"0.2.85", "0.2.84", "0.2.83", "0.2.82", "0.2.81", "0.2.80"} {
		t.Run(version, func(t *testing.T) {
			cmd := program(t, "run", "-q", "--engines", "webllm", "--repetitions", "1", "--prompt", c.Prompt,
				"--max-tokens", "64", "--webllm-version", version)
			well(t, cmd)
			r := recorded(t, cmd.Dir)
			mentions(t, good(t, "report", r.Dir, "--details"), "WebLLM "+version+" (npm)")
			for _, a := range r.Attempts {
				for _, request := range a.Measured() {
					in, ids := request.PromptIDs, idsOf(request)
					if !slices.Equal(in, c.PromptIDs) || !slices.Equal(ids, c.Expected) {
						t.Errorf("%v and then %v, want %v and then %v", in, ids, c.PromptIDs, c.Expected)
					}
				}
			}
		})
	}
	for _, version := range []string{"0.2.79", "0.2.78", "0.2.75", "0.2.61", "0.2.46", "0.2.30"} {
		t.Run(version, func(t *testing.T) {
			refuses(t, program(t, "run", "-q", "--engines", "webllm", "--webllm-version", version), fault.BadLibrary,
				"WebLLM "+version, "TVMFFIWasmSafeCall")
		})
	}
	refuses(t, program(t, "run", "-q", "--engines", "webllm", "--webllm-version", "0.2.999"), fault.NoBundle,
		"npm has no version 0.2.999")
}
