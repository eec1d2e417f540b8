package compare_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// answers are those to a run's checklist, by item.
func answers(run *record.Run) map[string]explain.Check {
	out := map[string]explain.Check{}
	for _, c := range compare.Runs(run).Runs[0].Checklist {
		out[c.Item] = c
	}
	return out
}

func TestChecklistAnswersNo(t *testing.T) {
	for _, c := range []struct {
		item  string
		spoil func(*record.Run)
		want  explain.Answer
	}{
		{explain.SameModel, func(r *record.Run) { r.Cells[1].Model.SHA256 = "another" }, explain.No},
		{explain.SameModel, func(r *record.Run) { r.Cells[1].Model.Format = "served" }, explain.Unknown},
		{explain.SamePrompt, func(r *record.Run) { r.Cells[1].Prompt = "another" }, explain.No},
		{explain.SameMaxTokens, func(r *record.Run) { r.Cells[1].MaxTokens++ }, explain.No},
		{explain.Deterministic, func(r *record.Run) { r.Cells[1].Temperature = 0.7 }, explain.No},
		{explain.QuietMachine, func(r *record.Run) { r.Environment.Background.Cores = 3 }, explain.No},
		{explain.QuietMachine, func(r *record.Run) { r.Environment.Background.Stolen = 3 }, explain.No},
		{explain.QuietMachine, func(r *record.Run) { r.Environment.Background = nil }, explain.Unknown},
		{explain.SeveralRuns, func(r *record.Run) { r.Attempts[0].Status = record.Failed }, explain.No},
		{explain.SystemState, func(r *record.Run) { r.Environment.Kernel = "" }, explain.No},
		{explain.SystemState, func(r *record.Run) { r.Attempts[0].Events = nil }, explain.No},
	} {
		run := comparetest.Run(t, "six", comparetest.Native(6), comparetest.Browser(6))
		run.Environment.Background = &record.Background{Seconds: 0.2, Cores: 0.4}
		c.spoil(run)
		for item, got := range answers(run) {
			want := explain.Yes
			if item == c.item {
				want = c.want
			}
			if got.Answer != want {
				t.Errorf("%s spoiled: %+v, want %s", c.item, got, want)
			}
		}
	}
}

func TestChecklistSaysHowPromptsWereRendered(t *testing.T) {
	for want, c := range map[string]func(*record.Run){
		"in total), without a template":           func(*record.Run) {},
		"in total), in the model's chat template": func(r *record.Run) { r.Cells[0].Chat, r.Cells[1].Chat = true, true },
		"in total)": func(r *record.Run) {
			for _, e := range r.Attempts[0].Events {
				if e.Engine != nil {
					e.Engine.Policy["prompt"] = "user message in the server's chat template"
				}
			}
		},
	} {
		run := comparetest.Run(t, "six", comparetest.Native(6), comparetest.Browser(6))
		c(run)
		if got := answers(run)[explain.SamePrompt].Why; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A sweep has several of everything, and is sound where each engine had all of it.
func TestChecklistOfASweep(t *testing.T) {
	run := comparetest.Run(t, "sweep", comparetest.Native(6), comparetest.Browser(6))
	run.Cells = append(run.Cells, run.Cells...)
	for i := range run.Cells {
		run.Cells[i].ID, run.Cells[i].MaxTokens = i+1, 32<<(i/2)
		run.Cells[i].Model.SHA256 = []string{"one", "one", "other", "other"}[i]
	}
	got := answers(run)
	if got[explain.SameModel].Answer != explain.Yes || got[explain.SameMaxTokens].Answer != explain.Yes {
		t.Errorf("%+v\n%+v", got[explain.SameModel], got[explain.SameMaxTokens])
	}
	run.Cells[3].MaxTokens, run.Cells[3].Model.SHA256 = 1, "none"
	got = answers(run)
	if got[explain.SameModel].Answer != explain.No || got[explain.SameMaxTokens].Answer != explain.No {
		t.Errorf("%+v\n%+v", got[explain.SameModel], got[explain.SameMaxTokens])
	}
}
