package plan_test

import (
	"context"
	"testing"

	"llmparity/examples/kind"
	"llmparity/internal/bench/dryrun"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	llm "llmparity/internal/models"
	"llmparity/internal/record"
)

// A plan is expanded once: what is decided for cells, shown of them and measured is about the same ones.
func TestRunExpandsOnce(t *testing.T) {
	n, was := 0, plan.Expanded
	plan.Expanded = func() { n++ }
	t.Cleanup(func() { plan.Expanded = was })
	p, err := plan.Parse([]byte("engines: [example]\nmodel: tiny\ncontext: 64\nprompts: [A, The]\nmax_tokens: [1, 2]\n"+
		"example: {delay: [0, 1]}\nrepetitions: 1\nwarmup: {launches: 0, tokens: 1}\ncheck: false\nparity: false\n"),
		"p.yaml", kind.Kind)
	check.Err(t, err)
	check.Err(t, p.Validate())
	r, err := resolve.New(p, resolve.Means{Complete: func(*plan.Plan, llm.Model) {},
		Engines: func(_ context.Context, p plan.Plan) ([]resolve.Engine, error) {
			choice := engine.NewChoice(engine.Kinds{kind.Kind}).With(engine.Settings{}, p.Sections)
			return []resolve.Engine{{Engine: choice.Engine("example"), Kind: kind.Kind, Planned: "example"}}, nil
		}})
	check.Err(t, err)
	defer r.Close()
	resolved, err := r.Resolve(t.Context())
	check.Err(t, err)
	lines := dryrun.Of(resolved).Lines
	dir, err := run.Do(t.Context(), run.Options{Matrix: resolved.Matrix, Open: resolved.Open, Out: t.TempDir()})
	check.Err(t, err)
	recorded, err := record.Open(dir)
	check.Err(t, err)
	if len(lines) != 8 || len(recorded.Cells) != 8 || len(recorded.Attempts) != 8 || n != 1 {
		t.Errorf("%d lines, %d cells, %d launches; expanded %d times", len(lines), len(recorded.Cells),
			len(recorded.Attempts), n)
	}
	for i, c := range recorded.Cells {
		if l := lines[i]; c.ID != i+1 || l.ID != c.ID || l.MaxTokens != c.MaxTokens || l.Prompt != c.Prompt ||
			c.Setup != 1+i/4 || c.Settings["delay"] != [2]string{"0", "1"}[i/4] {
			t.Errorf("cell %d of the record is %+v, in the dry run %+v", i+1, c, l.Cell)
		}
	}
	again, err := run.Do(t.Context(), run.Options{Matrix: resolved.Matrix, Open: resolved.Open, Resume: dir})
	if err != nil || again != dir || n != 1 {
		t.Errorf("resumed: %v; expanded %d times", err, n)
	}
}

// A plan of temperatures is read as it is written: runs are resumed with it.
func TestTemperaturesAreWritten(t *testing.T) {
	p, err := plan.Parse([]byte("engines: [a]\nmodel: tiny\nprompts: [A]\nmax_tokens: 1\ntemperatures: [0, 0.7]\n"), "p")
	check.Err(t, err)
	text, err := p.YAML()
	check.Err(t, err)
	again, err := plan.Parse(text, "p")
	if err != nil || len(again.Temperatures) != 2 {
		t.Errorf("%v in\n%s", err, text)
	}
}
