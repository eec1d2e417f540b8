package collect

import (
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/history"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

func TestCellsKeepTheirKeyAcrossVersions(t *testing.T) {
	base := record.Cell{Engine: "webllm", Model: record.Model{Name: "tiny", SHA256: "a", DType: "f32"}, PromptID: 1,
		Prompt: "hello", MaxTokens: 32, Isolation: record.OfLaunch, PromptCache: record.CacheOff,
		Settings: map[string]string{"webllm_version": "0.2.85", "ubatch": "64"}}
	newer, other, longer := base, base, base
	newer.Settings = map[string]string{"webllm_version": "0.2.86", "ubatch": "64"}
	newer.Model.SHA256, newer.PromptID = "b", 2
	other.Settings = map[string]string{"webllm_version": "0.2.85", "ubatch": "128"}
	longer.MaxTokens = 64
	if Key(&base) != Key(&newer) {
		t.Errorf("another version has another key:\n%s\n%s", Key(&base), Key(&newer))
	}
	for _, c := range []*record.Cell{&other, &longer} {
		if Key(&base) == Key(c) {
			t.Errorf("another cell has the same key: %s", Key(c))
		}
	}
	if got := Label(&base, "WebLLM"); got != "WebLLM, tiny f32, 32 tokens, ubatch 64" {
		t.Errorf("label %q", got)
	}
}

func TestRunsHaveTheFiguresOfTheComparison(t *testing.T) {
	native, page := comparetest.Native(6), comparetest.Browser(6)
	page.Vary = 0.1
	run := comparetest.Run(t, "both", native, page)
	res := compare.Runs(run)
	got, err := Run(res, []*record.Run{run}, Options{Commit: history.Commit{SHA: "1a2b3c4"},
		Control: "engine=" + native.Cell.Engine})
	check.Err(t, err)
	if len(got.Cells) != 2 || len(got.Launches) != 12 || !got.Cells[0].Fixed || *got.Cells[1].Control != 0 {
		t.Fatalf("%d launches of %+v", len(got.Launches), got.Cells)
	}
	for _, m := range got.Summaries() {
		f, cell := got.Figures[m.Name], res.Cells[m.Cell]
		want := cell.Figure(f.Name)
		if want.Median == nil || math.Abs(*want.Median-m.Value) > 1e-9*math.Abs(m.Value) || int(m.N) != want.N {
			t.Errorf("%s of %s: median %v of %d, want %v of %d", f.Name, cell.Label, m.Value, m.N, want.Center(), want.N)
		}
		if i := want.Interval; i != nil && (float32(i.Lo) != m.Low || float32(i.Hi) != m.High) {
			t.Errorf("%s of %s: interval %v to %v, want %v", f.Name, cell.Label, m.Low, m.High, *i)
		}
	}
	if got.Commit.Time.IsZero() || got.Machine == "" || got.Environment["kernel"] == "" {
		t.Errorf("head %+v", got.Head)
	}
}

func TestControlsAreOneCell(t *testing.T) {
	native, page := comparetest.Native(6), comparetest.Browser(6)
	run := comparetest.Run(t, "both", native, page)
	_, err := Run(compare.Runs(run), []*record.Run{run}, Options{Commit: history.Commit{SHA: "1a2b3c4"},
		Control: "model=" + native.Cell.Model.Name})
	if err == nil || !strings.Contains(err.Error(), "both match") {
		t.Errorf("two control cells: %v", err)
	}
}

// TestBaselineSidesAreControlCells: in an interleaved run, each cell of the run has the baseline side's as its control.
func TestBaselineSidesAreControlCells(t *testing.T) {
	was, is := comparetest.Run(t, "was", comparetest.Native(6)), comparetest.Run(t, "is", comparetest.Native(6))
	got, err := Run(compare.Runs(was, is), []*record.Run{was, is}, Options{Commit: history.Commit{SHA: "1a2b3c4"}})
	check.Err(t, err)
	if len(got.Cells) != 2 || !got.Cells[0].Fixed || got.Cells[1].Control == nil || *got.Cells[1].Control != 0 ||
		got.Cells[0].Key == got.Cells[1].Key {
		t.Errorf("%+v", got.Cells)
	}
}
