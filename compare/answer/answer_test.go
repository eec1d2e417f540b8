package answer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/compare/gate"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// said is the sentence of the verdict that answers a question.
func said(r *compare.Result, question string) string {
	for _, s := range answer.Of(r).Sentences() {
		if strings.HasPrefix(s, question+": ") {
			return s
		}
	}
	return ""
}

// The answer names every pair of engines, and claims nothing that the statistics don't.
func TestAnswerNamesEveryPairOfEngines(t *testing.T) {
	var all []comparetest.Engine
	for n, name := range []string{"a", "b", "c"} {
		e := comparetest.Native(8)
		e.Cell.ID, e.Cell.Engine, e.Vary = n+1, name, 0.1
		if name == "c" {
			e.Token *= 3
			e.TTFT += 30 * time.Millisecond
		}
		all = append(all, e)
	}
	r := compare.Runs(comparetest.Run(t, "three", all...))
	check.Has(t, said(r, "Speed"), "a and b: no difference above 18% can be seen (from a to b, 95% CI -18% to +4.3%)", "a is 3.", "b is 3.",
		"times as fast as c")
	check.Has(t, said(r, "Memory"), "No difference above 5% can be seen")
}

// If two engines have the same warning, one line of the answer names both.
func TestAnswerWarnsOnceOfBothEngines(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	a.Cell.ID, b.Cell.ID, a.Cell.Engine, b.Cell.Engine = 1, 2, "a", "b"
	a.Vary, b.Vary = 0.3, 0.5
	got := answer.Of(compare.Runs(comparetest.Run(t, "noisy", a, b)))
	var of []string
	for _, w := range got.Warnings {
		if w.Code == explain.WideInterval.Code {
			of = append(of, w.Where)
			check.Has(t, w.Text, "figures vary by more than 10% between launches (load time, ")
		}
	}
	if !slices.Equal(of, []string{"a; b"}) {
		t.Errorf("%q: %+v", of, got.Warnings)
	}
}

// Where six launches that vary much can't tell, the verdict says what it takes to see a tenth.
func TestVerdictNamesLaunchesNeeded(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	a.Cell.ID, b.Cell.ID, a.Cell.Engine, b.Cell.Engine = 1, 2, "a", "b"
	a.Vary, b.Vary = 0.06, 0.06
	check.Has(t, said(compare.Runs(comparetest.Run(t, "noisy", a, b)), "Speed"), "so a change of 10% needs")
	a.Vary, b.Vary = 0.005, 0.005
	if s := said(compare.Runs(comparetest.Run(t, "quiet", a, b)), "Speed"); strings.Contains(s, "needs") {
		t.Error(s)
	}
}

// A mean over cells that differ in opposite directions says nothing; what the verdict makes of it must not pass for no
// difference.
func TestVerdictShowsWhatMeanHides(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	s := comparetest.Series{Launches: 10, Cells: 5, CV: 0.01}
	for _, c := range []struct {
		by     [5]float64
		want   string
		hidden bool
	}{
		{[5]float64{1.3, 1 / 1.3, 1, 1, 1}, "in 1 of 5 pairs", true},
		{[5]float64{1.3, 1.3, 1.3, 1.3, 0.9}, "is faster than b in 4 of 5 pairs", true},
		{[5]float64{1.3, 1.3, 1.3, 1.3, 1.3}, "is faster than b in all 5 pairs", false},
		{[5]float64{1, 1, 1, 1, 1}, "no difference above 2% can be seen", false},
	} {
		by := map[int]float64{}
		for i, f := range c.by {
			by[i+1] = f
		}
		a, b := s.Run(r, "a"), comparetest.Slowed(s.Run(r, "b"), by)
		for _, r := range []*compare.Result{compare.Runs(a, b), compare.Runs(a, b, a)} {
			if s := said(r, "Speed"); !strings.Contains(strings.ToLower(s), c.want) ||
				strings.Contains(s, "1 pair goes the other way") != c.hidden {
				t.Errorf("%v: %s", c.by, s)
			}
		}
	}
}

// Pairs that have nothing in common are in no mean: each counts, not the first alone.
func TestAnswerCountsPairsWithoutAMean(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	s := comparetest.Series{Launches: 10, Cells: 2, CV: 0.02}
	o := compare.Defaults()
	o.By = []string{"prompt"}
	res := compare.With(o, s.Run(r, "a"), comparetest.Slowed(s.Run(r, "b"), map[int]float64{1: 1, 2: 1.5}))
	if s := said(res, "Speed"); !strings.Contains(s, "a is faster than b in 1 of 2 pairs. 1.5") ||
		!strings.Contains(s, "1 pair without a difference") || strings.Contains(s, "mean") {
		t.Error(s)
	}
}

// The title counts cells that ran, and names what repetitions ran in.
func TestTitleIsOfWhatRan(t *testing.T) {
	ran, refused, reused := comparetest.Native(6), comparetest.Native(6), comparetest.Native(6)
	refused.Cell.ID, refused.Cell.Model.Name, refused.Refused = 3, "other", errors.New("too large")
	one := answer.Of(compare.Runs(comparetest.Run(t, "refused", ran, refused)))
	if got := one.Title; strings.Contains(got, "models") {
		t.Errorf("one of two models ran: %q", got)
	}
	reused.Cell.ID, reused.Cell.Reused, reused.Reused = 3, true, true
	got := answer.Of(compare.Runs(comparetest.Run(t, "reused", ran, reused))).Title
	if !strings.HasSuffix(got, ", new processes and reused processes") {
		t.Errorf("%q", got)
	}
}

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
		}), "Output only. Not memory or speed: 1 of 13 launches failed"},
		"few launches": {[]comparetest.Engine{comparetest.Native(5)}, "Output only. Not memory or speed: too few launches for an interval"},
		"other prompts": {second(func(e *comparetest.Engine) { e.PromptIDs = []int{12, 44, 7} }),
			"No. llamacpp and another did not have the same prompt tokens"},
		"shared memory": {second(func(e *comparetest.Engine) {
			e.Processes = []comparetest.Process{{Role: "server", Before: 300, Loaded: 420, Shared: 250}}
		}), "Speed and output only. Not memory: other programs shared memory"},
		"other output": {second(func(e *comparetest.Engine) { e.IDs = other }),
			"Memory and output only. Not speed: the outputs of "},
		"software": {[]comparetest.Engine{comparetest.Browser(6), comparetest.Native(6)},
			"Memory and output only. Not speed. Not as browser against native: WebGPU ran on the CPU (SwiftShader), " +
				"and the model library was llmparity's, not MLC's. Memory and output may be quoted with these remarks."},
		"only software": {[]comparetest.Engine{comparetest.Browser(6)}, "Memory and output only. Not speed. Not as a browser on a GPU: WebGPU ran on"},
		"few on the CPU": {[]comparetest.Engine{comparetest.Browser(5), comparetest.Native(6)},
			"Output only. Not memory: too few launches for an interval, which takes 6. Not speed. Not as browser " +
				"against native: WebGPU ran on the CPU (SwiftShader), and the model library was " +
				"llmparity's, not MLC's. Output may be quoted with these remarks."},
		"noisy speed": {second(func(e *comparetest.Engine) { e.Vary = 0.5 }), "Output only. Not memory: " +
			"launches vary too much to tell the difference. Not speed: too noisy, the interval reaches 301% from the median."},
		"tokens at once": {second(func(e *comparetest.Engine) {
			e.Token, e.Reported = 0, func(_, _ time.Duration) map[string]float64 { return nil }
		}),
			"Memory and output only. Not speed: the speed is known for 0 of 6 launches of another"},
	} {
		a := answer.Of(compare.Runs(comparetest.Run(t, "quoted", c.engines...)))
		if got := a.Quote.Headline + ". " + a.Quote.Text; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A difference without an interval says why it has none.
func TestAnswerOfFewLaunches(t *testing.T) {
	run := comparetest.Run(t, "run", comparetest.Browser(5), comparetest.Native(5))
	check.Has(t, answer.Of(compare.Runs(run)).Memory.Text, "5 launches: too few for an interval")
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
		}, "Growth, speed and output only. Not memory: other programs shared memory"},
		"noisy": {0.5, func(int64) *comparetest.Inside { return nil },
			"Output only. Not growth: too noisy, the interval reaches "},
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
		q := answer.Of(compare.Runs(comparetest.Run(t, "growth", engines...))).Quote
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
	if got := answer.Of(res).Speed.Headline; !strings.HasSuffix(got, ", with prompts of 4 and 2 tokens") {
		t.Errorf("speed: %q", got)
	}
	if got := strings.Join(res.Comparability, "; "); strings.Contains(got, "same model, prompt") ||
		!strings.Contains(got, "but prompts of 4 and 2 tokens") {
		t.Errorf("details: %q", got)
	}
}

// If CPU time alone fails a gate, the title says so, and claims no equal speed.
func TestTitleSaysWhatFailed(t *testing.T) {
	for _, c := range []struct {
		figure string
		by     float64
		want   string
	}{
		{figure.TokenCPU, 1.3, "after needs 30% more CPU time per token than before"},
		{figure.LoadTime, 1.3, "after has a load time 29% higher than before"},
		{figure.DecodeTPS, 1.3, "after is 2"},
		{figure.TTFT, 1, "after and before: no difference above "},
	} {
		s := comparetest.Series{Launches: 12, Cells: 1, CV: 0.02, CPU: 0.01}
		base := s.Run(rand.New(rand.NewPCG(7, 1)), "before")
		s.Shift = map[string]float64{c.figure: c.by}
		now := s.Run(rand.New(rand.NewPCG(7, 2)), "after")
		now.Meta.Against = "before"
		res := compare.Runs(base, now)
		g := (&gates.Gate{}).Against()
		g.Changes = append(g.Changes, gates.Change{Figure: figure.Of(figure.LoadTime), Change: 0.1})
		res.Gate = gate.Evaluate(g, compare.Runs(now), compare.Runs(base))
		title := answer.Of(res).Title
		if c.by != 1 && res.Gate.Status != gates.Failed || !strings.HasPrefix(title, c.want) ||
			strings.Contains(title, "CPU time") && strings.Contains(title, "speed") {
			t.Errorf("%s: the gate's status is %s, the title %q", c.figure, res.Gate.Status, title)
		}
	}
}

// What can only change speeds is no warning of an answer that compares none, and is one of an answer that does.
func TestWarningsOfSpeedsNeedSpeeds(t *testing.T) {
	codes := func(engines ...comparetest.Engine) string {
		for i := range engines {
			engines[i].Vary = 0.4
		}
		run := comparetest.Run(t, "default", engines...)
		run.Environment.Background = &record.Background{Seconds: 1, Cores: 6}
		res := compare.Runs(run)
		if len(res.Warnings) == 0 {
			t.Error("a busy machine has no warning")
		}
		return fmt.Sprint(answer.Of(res).Warnings)
	}
	other := comparetest.Native(6)
	other.Cell.ID, other.Cell.Engine, other.Info.Name = 3, "another", "another"
	if got := codes(comparetest.Browser(6), comparetest.Native(6)); strings.Contains(got, "busy-machine") {
		t.Errorf("speeds on SwiftShader and a CPU are not compared: %s", got)
	}
	check.Has(t, codes(comparetest.Native(6), other), "busy-machine", "wide-interval")
}

// Of three versions the title says which is the slowest or the fastest, if its interval lies apart from the others'.
func TestTitleNamesTheExtremeOfThree(t *testing.T) {
	for name, c := range map[string]struct {
		factors []float64
		has     string
	}{
		"slowest": {[]float64{1, 1.54, 1}, "1.1 is the slowest of 3, 37% slower than"},
		"fastest": {[]float64{1, 0.5, 1}, "1.1 is the fastest of 3, "},
		"neither": {[]float64{1, 1, 1}, ""},
	} {
		var engines []comparetest.Engine
		for i, factor := range c.factors {
			e := comparetest.Native(8)
			e.Cell.ID, e.Cell.Settings = 20+i, map[string]string{"webllm_version": fmt.Sprint("1.", i)}
			e.Token = time.Duration(float64(e.Token) * factor)
			engines = append(engines, e)
		}
		got := answer.Of(compare.Runs(comparetest.Run(t, "versions", engines...))).Title
		t.Log(got)
		if !strings.Contains(got, c.has) || c.has == "" && strings.Contains(got, "of 3") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
