package compare_test

import (
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// answers are those to a run's checklist, by item.
func answers(run *record.Run) map[string]compare.Check {
	out := map[string]compare.Check{}
	for _, c := range compare.Runs(run).Runs[0].Checklist {
		out[c.Item] = c
	}
	return out
}

// items are all there are, in the order of the list.
func items() []string {
	return []string{compare.SameModel, compare.SamePrompt, compare.SameMaxTokens, compare.Deterministic,
		compare.QuietMachine, compare.SeveralRuns,
		compare.SystemState}
}

func TestEveryItemOfTheChecklistIsAnswered(t *testing.T) {
	run := comparetest.Run(t, "six", comparetest.Native(6), comparetest.Browser(6))
	run.Environment.Background = &record.Background{Seconds: 0.2, Cores: 0.4,
		Busiest: []record.BusyProcess{{Name: "cron", Processes: 1, Cores: 0.3}}}
	list := compare.Runs(run).Runs[0].Checklist
	if len(list) != len(items()) {
		t.Fatalf("%d items", len(list))
	}
	for i, item := range items() {
		if list[i].Item != item || list[i].Answer != compare.Yes || list[i].Why == "" {
			t.Errorf("%+v, want yes to %q", list[i], item)
		}
	}
}

func TestWhatSpoilsARunIsAnsweredNo(t *testing.T) {
	for _, c := range []struct {
		item  string
		spoil func(*record.Run)
		want  compare.Answer
	}{
		{compare.SameModel, func(r *record.Run) { r.Cells[1].Model.SHA256 = "another" }, compare.No},
		{compare.SameModel, func(r *record.Run) { r.Cells[1].Model.Format = "served" }, compare.Unknown},
		{compare.SamePrompt, func(r *record.Run) { r.Cells[1].Prompt = "another" }, compare.No},
		{compare.SameMaxTokens, func(r *record.Run) { r.Cells[1].MaxTokens++ }, compare.No},
		{compare.Deterministic, func(r *record.Run) { r.Cells[1].Temperature = 0.7 }, compare.No},
		{compare.QuietMachine, func(r *record.Run) { r.Environment.Background.Cores = 3 }, compare.No},
		{compare.QuietMachine, func(r *record.Run) { r.Environment.Background.Stolen = 3 }, compare.No},
		{compare.QuietMachine, func(r *record.Run) { r.Environment.Background = nil }, compare.Unknown},
		{compare.SeveralRuns, func(r *record.Run) { r.Attempts[0].Status = record.Failed }, compare.No},
		{compare.SystemState, func(r *record.Run) { r.Environment.Kernel = "" }, compare.No},
		{compare.SystemState, func(r *record.Run) { r.Attempts[0].Events = nil }, compare.No},
	} {
		run := comparetest.Run(t, "six", comparetest.Native(6), comparetest.Browser(6))
		run.Environment.Background = &record.Background{Seconds: 0.2, Cores: 0.4}
		c.spoil(run)
		for item, got := range answers(run) {
			want := compare.Yes
			if item == c.item {
				want = c.want
			}
			if got.Answer != want {
				t.Errorf("%s spoiled: %+v, want %s", c.item, got, want)
			}
		}
	}
}

// A sweep has several of everything, and is sound where each engine had all of it.
func TestASweepsChecklist(t *testing.T) {
	run := comparetest.Run(t, "sweep", comparetest.Native(6), comparetest.Browser(6))
	answers := func(run *record.Run) map[string]compare.Check {
		out := map[string]compare.Check{}
		for _, c := range compare.Checklist(run) {
			out[c.Item] = c
		}
		return out
	}
	run.Cells = append(run.Cells, run.Cells...)
	for i := range run.Cells {
		run.Cells[i].ID, run.Cells[i].MaxTokens = i+1, 32<<(i/2)
		run.Cells[i].Model.SHA256 = []string{"one", "one", "other", "other"}[i]
	}
	got := answers(run)
	if got[compare.SameModel].Answer != compare.Yes || got[compare.SameMaxTokens].Answer != compare.Yes {
		t.Errorf("%+v\n%+v", got[compare.SameModel], got[compare.SameMaxTokens])
	}
	run.Cells[3].MaxTokens, run.Cells[3].Model.SHA256 = 1, "none"
	got = answers(run)
	if got[compare.SameModel].Answer != compare.No || got[compare.SameMaxTokens].Answer != compare.No {
		t.Errorf("%+v\n%+v", got[compare.SameModel], got[compare.SameMaxTokens])
	}
}

func TestARunWithoutCellsIsAnsweredUnknown(t *testing.T) {
	got := answers(comparetest.Run(t, "none"))
	for _, item := range items() {
		if got[item].Answer != compare.Unknown {
			t.Errorf("%+v", got[item])
		}
	}
}
