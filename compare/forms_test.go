package compare_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// inForms are cells of engines that run three forms of a model and score so many windows of a text. A token of Q4_K_M
// is less likely than in Q8_0 by about 0.006 nats, one of Q4_0 by 0.02.
func inForms(t *testing.T, windows int, engines ...func(int) comparetest.Engine) *record.Run {
	t.Helper()
	var all []comparetest.Engine
	for n, form := range []struct {
		name      string
		file      int64
		mib, nats float64
	}{{"Q8_0", 145 << 20, 80, 0}, {"Q4_K_M", 105 << 20, 40, 0.006}, {"Q4_0", 92 << 20, 20, 0.02}} {
		for _, engine := range engines {
			e := engine(6)
			e.Cell.ID, e.Cell.Setup = len(all)+1, len(all)+1
			m := &e.Cell.Model
			m.Name, m.SHA256, m.FileB = "Small-135M-"+form.name, form.name, form.file
			m.DType = strings.ToLower(form.name)
			e.Processes[len(e.Processes)-1].Loaded += form.mib
			if windows > 0 {
				e.Scored = record.Scoring{Reference: 1, PromptIDs: []int{1}, Top: 2,
					Window: &record.Window{Text: "a.txt", SHA256: "5f", Of: windows}}
			}
			for i := range 2 * windows {
				hard := -1 - 2*float64(i/2%5)
				worse := form.nats * (0.9 + 0.2*float64(i/2%2))
				e.Scores = append(e.Scores, record.Score{Forced: 7, LogProb: hard - worse,
					Top: []record.Candidate{{ID: 8, LogProb: -0.1 - float64(n)/100}, {ID: 9, LogProb: -5}}})
			}
			all = append(all, e)
		}
	}
	return comparetest.Run(t, "forms", all...)
}

func TestAnswerSaysWhichFormToShip(t *testing.T) {
	r := compare.Runs(inForms(t, 20, comparetest.Browser, comparetest.Native))
	a := answer.Of(r)
	if want := "Q4_K_M is 28% smaller than Q8_0, for 0.6% more perplexity"; a.Title != want {
		t.Errorf("title %q, want %q", a.Title, want)
	}
	check.Has(t, a.Ship.Sentence(), "Q4_K_M, by memory and quality", "Perplexity is within 1% of Q8_0's: +0.60%",
		"Q4_0 saves ", "against Q4_K_M and costs 1.4% more perplexity")
	check.Has(t, a.Place.Sentence(), " MiB more in the browser",
		"`llmparity reproduce results/forms --out on-a-gpu.yaml`", "`llmparity run on-a-gpu.yaml` on a machine with a GPU")
	if of := r.Forms[0]; of.Model != "Small 135M" || len(of.Engines) != 2 || !of.Engines[0].OnCPU {
		t.Errorf("%+v", of)
	}
}

// Without enough windows no form is recommended, and what is missing is said.
func TestNoFormStandsOutWithFewWindows(t *testing.T) {
	a := answer.Of(compare.Runs(inForms(t, 8, comparetest.Native)))
	if a.Ship.Headline != "No form stands out" || !a.Ship.Unknown {
		t.Errorf("%+v", a.Ship)
	}
	check.Has(t, a.Ship.Text, "8 windows of a text were scored, and a paired interval needs 16", "--quality quick")
}

func TestFormsWithoutQualityAreRankedByMemory(t *testing.T) {
	a := answer.Of(compare.Runs(inForms(t, 0, comparetest.Native)))
	check.Has(t, a.Ship.Sentence(), "Q4_0, by memory alone; quality was not measured", "Run with --quality quick.")
	check.Has(t, a.Title, "Q4_0 is 1.6 times smaller than Q8_0; quality is not known")
}

// Scores of an interrupted run are no quality, and the answer does not say that nobody asked for it.
func TestFormsOfWhichOneIsScored(t *testing.T) {
	run := inForms(t, 20, comparetest.Native)
	run.Scorings = slices.DeleteFunc(run.Scorings, func(a *record.Attempt) bool { return a.Cell > 1 })
	a := answer.Of(compare.Runs(run))
	check.Has(t, a.Ship.Sentence(), "Q4_0, by memory alone; quality is not known", "Resume the run.")
}

// A tolerance of the reader's own decides.
func TestPerplexityTolerance(t *testing.T) {
	o := compare.Defaults()
	o.Perplexity = 0.03
	run := inForms(t, 20, comparetest.Native)
	check.Has(t, answer.Of(compare.With(o, run)).Ship.Sentence(), "Q4_0, by memory and quality", "within 3% of")
	o.Perplexity = 0.001
	a := answer.Of(compare.With(o, run))
	check.Has(t, a.Ship.Sentence(), "Keep Q8_0")
	check.Has(t, a.Title, "No smaller download keeps Q8_0's perplexity within 0.1%")
}

// The reference cell's form is the one that others are compared with.
func TestFormsAreComparedWithTheReferenceCell(t *testing.T) {
	o := compare.Defaults()
	o.Reference = map[string]string{"model": "Small-135M-Q4_K_M"}
	r := compare.With(o, inForms(t, 20, comparetest.Native))
	if of := r.Forms[0]; of.Forms[of.Reference].Name != "Q4_K_M" {
		t.Errorf("reference %s", of.Forms[of.Reference].Name)
	}
}

// Engines' versions are columns, contexts are tables, and models have tables of their own.
func TestOtherAxesOfForms(t *testing.T) {
	web := func(version string, context int) func(int) comparetest.Engine {
		return func(n int) comparetest.Engine {
			e := comparetest.Browser(n)
			e.Cell.Settings, e.Cell.Model.Context = map[string]string{"webllm_version": version}, context
			return e
		}
	}
	r := compare.Runs(inForms(t, 0, web("a", 256), web("b", 256)))
	if len(r.Forms) != 1 || len(r.Forms[0].Engines) != 2 {
		t.Errorf("versions: %d tables", len(r.Forms))
	}
	if r = compare.Runs(inForms(t, 0, web("a", 256), web("a", 512))); len(r.Forms) != 2 || r.Forms[0].Request == "" {
		t.Errorf("contexts: %d tables", len(r.Forms))
	}
	if r = compare.Runs(comparetest.Run(t, "one", comparetest.Native(6))); r.Forms != nil {
		t.Error("one form has a table")
	}
}

// Two files whose weights have the same dtype are forms with the names of their files.
func TestFormsOfOneDTypeAreNamedByTheirFiles(t *testing.T) {
	run := inForms(t, 20, comparetest.Native)
	for i := range run.Cells {
		m := &run.Cells[i].Model
		m.Name = "Small-135M"
		if m.File = "models/small-" + m.SHA256 + ".gguf"; m.SHA256 != "Q4_0" {
			m.DType = "q8_0"
		}
	}
	r := compare.Runs(run)
	var names []string
	for _, f := range r.Forms[0].Forms {
		names = append(names, f.Name)
	}
	if want := []string{"Q8_0", "Q4_K_M", "Q4_0"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// A form that is larger than the reference form pays no price for its size.
func TestTitleOfALargerForm(t *testing.T) {
	run := inForms(t, 20, comparetest.Native)
	run.Cells = run.Cells[:2]
	run.Cells[1].Model.FileB = 290 << 20
	r := compare.Runs(run)
	if got := answer.Of(r).Title; got != "Q4_K_M is 100% larger than Q8_0, with 0.6% more perplexity" {
		t.Errorf("title %q", got)
	}
}
