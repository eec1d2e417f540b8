package compare_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// Which figures may be quoted: those that no objection is about.
func TestQuote(t *testing.T) {
	other := slices.Clone(comparetest.IDs(64))
	other[5]++
	second := func(change func(e *comparetest.Engine)) []comparetest.Engine {
		a, b := comparetest.Native(6), comparetest.Native(6)
		b.Cell.ID, b.Cell.Engine, b.Info.Name = 3, "another", "another"
		if change != nil {
			change(&b)
		}
		return []comparetest.Engine{a, b}
	}
	for name, c := range map[string]struct {
		engines []comparetest.Engine
		want    string
	}{
		"a warning": {second(nil), "With care. Read the warnings first."}, // what sampling cost
		"a failed launch": {second(func(e *comparetest.Engine) {
			e.Cell.Repetitions, e.Failing = 7, map[int]record.Class{2: record.OOM}
		}), "No. 1 of 13 launches failed"},
		"few launches": {[]comparetest.Engine{comparetest.Native(5)}, "No. Too few launches"},
		"other prompts": {second(func(e *comparetest.Engine) { e.PromptIDs = []int{12, 44, 7} }),
			"No. llamacpp and another did not have the same prompt tokens"},
		"shared memory": {second(func(e *comparetest.Engine) {
			e.Processes = []comparetest.Process{{Role: "server", Before: 300, Loaded: 420, Shared: 250}}
		}), "Speed only. Other programs shared memory"},
		"other output": {second(func(e *comparetest.Engine) { e.IDs = other }), "Memory only. The outputs of "},
		"software": {[]comparetest.Engine{comparetest.Browser(6), comparetest.Native(6)},
			"No. WebGPU ran on the CPU (SwiftShader), so this does not show a browser on a GPU. Only the peak memory"},
		"few on the CPU": {[]comparetest.Engine{comparetest.Browser(5), comparetest.Native(6)},
			"No. WebGPU ran on the CPU (SwiftShader), so this does not show a browser on a GPU. Too few launches"},
		"noisy speed": {second(func(e *comparetest.Engine) { e.Vary = 0.5 }), "No. Speed is too noisy: its interval reaches"},
		"tokens at once": {second(func(e *comparetest.Engine) {
			e.Token, e.Reported = 0, func(_, _ time.Duration) map[string]float64 { return nil }
		}),
			"Memory only. another: the speed is known for 0 of 6 launches"},
	} {
		a := compare.Runs(comparetest.Run(t, "quoted", c.engines...)).Answer()
		if got := a.Quote.Headline + ". " + a.Quote.Text; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Speeds of prompts of other lengths say so, and nothing claims the same prompt.
func TestSpeedNamesOtherPromptLengths(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	b.Cell.ID, b.Cell.Engine, b.Info.Name = 3, "another", "another"
	b.Token *= 3
	b.PromptIDs = b.PromptIDs[:2]
	res := compare.Runs(comparetest.Run(t, "prompts", a, b))
	if got := res.Answer().Speed.Headline; !strings.HasSuffix(got, ", with prompts of 4 and 2 tokens") {
		t.Errorf("speed: %q", got)
	}
	if got := strings.Join(res.Comparability, "; "); strings.Contains(got, "same model, prompt") ||
		!strings.Contains(got, "but prompts of 4 and 2 tokens") {
		t.Errorf("details: %q", got)
	}
}
