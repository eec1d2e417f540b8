package compare_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Another server on the same file halves what is counted of it: no ratio is drawn from what is left.
func TestMemorySharedWithOtherPrograms(t *testing.T) {
	of := func(processes ...comparetest.Process) *compare.Result {
		a, b := comparetest.Native(6), comparetest.Native(6)
		a.Processes, b.Cell.ID, b.Cell.Engine = processes, 3, "other"
		return compare.Runs(comparetest.Run(t, "shared", a, b))
	}
	memory := func(r *compare.Result) bool {
		return slices.ContainsFunc(r.Comparisons[0].Ratios, func(r ratio.Ratio) bool {
			return r.Figure == figure.PeakPSS || r.Figure == figure.Increase
		})
	}
	r := of(comparetest.Process{Role: "server", Before: 300, Loaded: 420, Shared: 250})
	const shares = "llamacpp: other programs share 250"
	if w := warnedOf(r, "memory-shared"); len(w) != 1 || !strings.HasPrefix(w[0], shares) ||
		!strings.Contains(w[0], "PSS splits it between all programs") {
		t.Errorf("warnings %q", w)
	}
	if c := r.Comparisons[0]; memory(r) || len(c.Ratios) == 0 ||
		!strings.Contains(strings.Join(c.Caveats, "\n"), "memory is not compared: "+shares) {
		t.Errorf("%+v", c)
	}
	a, b := comparetest.Browser(6), comparetest.Native(6)
	alone := compare.Runs(comparetest.Run(t, "alone", a, b)).Answer()
	if !strings.Contains(alone.Memory.Headline, "more") {
		t.Errorf("a browser alone: %+v", alone.Memory)
	}
	const text = "/usr/bin/chromium runs outside the launch, too: PSS splits it"
	a.Warnings = []record.Warning{{Code: record.ProgramShared, Text: text}}
	answer := compare.Runs(comparetest.Run(t, "beside", a, b)).Answer()
	if answer.Memory.Headline != "webllm uses at least 764 MiB more than llamacpp" || !strings.Contains(answer.Memory.Text, text) ||
		!strings.Contains(answer.Quote.Text, "ther programs shared memory") ||
		strings.Contains(answer.Sure.Headline, "memory") {
		t.Errorf("a browser beside another: %+v, quote %+v", answer.Memory, answer.Quote)
	}
	// Of one process, PSS and RSS tell how much is shared: little is said, and memory is compared.
	one, other := comparetest.Native(6), comparetest.Native(6)
	one.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 22, Shared: 7}}
	one.Warnings, other.Cell.ID, other.Cell.Engine = a.Warnings, 3, "other"
	little := compare.Runs(comparetest.Run(t, "little", one, other))
	const left = text + "; up to 15% of the peak is left out"
	if w := warnedOf(little, "memory-shared"); len(w) != 1 || !strings.HasSuffix(w[0], left) || !memory(little) ||
		!strings.Contains(little.Answer().Quote.Text, "ther programs shared memory") {
		t.Errorf("a server beside another: %q, memory compared: %v, quote %+v", w, memory(little), little.Answer().Quote)
	}
	if h := little.Answer().Memory.Headline; !strings.Contains(h, "but other programs share up to 15% of what llamacpp uses") {
		t.Errorf("a ratio without what is shared: %s", h)
	}
	for name, processes := range map[string][]comparetest.Process{
		"libraries":                      {{Role: "server", Before: 8, Loaded: 22, Shared: 7}},
		"libraries beside a large model": {{Role: "server", Before: 60, Loaded: 420, Shared: 40}},
		"several of its own share between": {{Role: "browser", Before: 300, Loaded: 420, Shared: 250},
			{Role: "renderer", Before: 300, Loaded: 420, Shared: 250}},
	} {
		if r := of(processes...); len(warnedOf(r, "memory-shared")) != 0 || !memory(r) {
			t.Errorf("%s: %q, memory compared: %v", name, warnedOf(r, "memory-shared"), memory(r))
		}
	}
}
