package compare_test

import (
	"fmt"
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
		"a warning": {second(nil), "Yes. Read the warnings first."}, // what sampling cost
		"a failed launch": {second(func(e *comparetest.Engine) {
			e.Cell.Repetitions, e.Failing = 7, map[int]record.Class{2: record.OOM}
		}), "In part. Output may be quoted. Memory and speed may not: 1 of 13 launches failed"},
		"few launches": {[]comparetest.Engine{comparetest.Native(5)}, "In part. Output may be quoted. Memory and speed may not: too few launches for an interval"},
		"other prompts": {second(func(e *comparetest.Engine) { e.PromptIDs = []int{12, 44, 7} }),
			"No. llamacpp and another did not have the same prompt tokens"},
		"shared memory": {second(func(e *comparetest.Engine) {
			e.Processes = []comparetest.Process{{Role: "server", Before: 300, Loaded: 420, Shared: 250}}
		}), "In part. Speed and output may be quoted. Memory may not: other programs shared memory"},
		"other output": {second(func(e *comparetest.Engine) { e.IDs = other }),
			"In part. Memory and output may be quoted. Speed may not: the outputs of "},
		"software": {[]comparetest.Engine{comparetest.Browser(6), comparetest.Native(6)},
			"In part. Not as browser against native: WebGPU ran on the CPU (SwiftShader), and the model library was " +
				"llmparity's, not MLC's. Memory and output may be quoted with these remarks. Speed may not."},
		"only software": {[]comparetest.Engine{comparetest.Browser(6)}, "In part. Not as a browser on a GPU: WebGPU ran on"},
		"few on the CPU": {[]comparetest.Engine{comparetest.Browser(5), comparetest.Native(6)},
			"In part. Not as browser against native: WebGPU ran on the CPU (SwiftShader), and the model library was " +
				"llmparity's, not MLC's. Output may be quoted with these remarks. Memory may not: " +
				"too few launches for an interval, which takes 6. Speed may not."},
		"noisy speed": {second(func(e *comparetest.Engine) { e.Vary = 0.5 }), "In part. Output may be quoted. Memory may not: " +
			"launches vary too much to tell the difference. Speed may not: too noisy, the interval reaches 301% from the median."},
		"tokens at once": {second(func(e *comparetest.Engine) {
			e.Token, e.Reported = 0, func(_, _ time.Duration) map[string]float64 { return nil }
		}),
			"In part. Memory and output may be quoted. Speed may not: the speed is known for 0 of 6 launches of another"},
	} {
		a := compare.Runs(comparetest.Run(t, "quoted", c.engines...)).Answer()
		if got := a.Quote.Headline + ". " + a.Quote.Text; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The slope of the KV cache may be quoted though other programs change the peaks, and a noisy slope may not.
func TestQuoteOfGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		vary   float64
		inside func(context int64) *comparetest.Inside
		want   string
	}{
		"reserved": {0, func(context int64) *comparetest.Inside {
			page := comparetest.Page()
			page.KVReserved = context << 10
			return page
		}, "In part. Growth, speed and output may be quoted. Memory may not: other programs shared memory"},
		"noisy": {0.5, func(int64) *comparetest.Inside { return nil },
			"In part. Output may be quoted. Growth may not: too noisy, the interval reaches "},
	} {
		var engines []comparetest.Engine
		for n, context := range []int64{1024, 4096, 16384} {
			e := comparetest.Measured(comparetest.Native(6), c.inside(context))
			e.Cell.ID, e.Cell.Model.Context, e.Vary = 10+n, int(context), c.vary
			e.Info.Policy = map[string]string{"kv_dtype": "f32", "context": fmt.Sprint(context)}
			loaded := 420 + float64(context)/128
			e.Processes = []comparetest.Process{{Role: "server", Before: 300, Loaded: loaded, Shared: 250}}
			engines = append(engines, e)
		}
		q := compare.Runs(comparetest.Run(t, "growth", engines...)).Answer().Quote
		if got := q.Headline + ". " + q.Text; !strings.HasPrefix(got, c.want) {
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
