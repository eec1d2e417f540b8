package reports_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/check"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// A page that is sent by mail or opened on a phone has an end: what is left out of it stands in the run's folder, and
// the page says so.
func TestPageOfManyLaunchesStaysSmall(t *testing.T) {
	var engines []comparetest.Engine
	for i := range 10 {
		for _, e := range []comparetest.Engine{comparetest.Measured(comparetest.Browser(20), comparetest.Page()),
			comparetest.Native(20)} {
			e.Cell.ID, e.Cell.PromptID, e.Cell.InputTokens = len(engines), i+1, 16<<i
			e.Cell.Prompt = fmt.Sprintf("a prompt of %d tokens", e.Cell.InputTokens)
			e.Prediction = &record.Prediction{Source: "arithmetic", Parts: []record.Predicted{
				comparetest.Predict(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
				comparetest.Predict(figure.FrameworkOverhead, 40, 80, 110, ""),
				comparetest.Predict(figure.MemoryIncrease, 60, 90, 130, "")}}
			engines = append(engines, e)
		}
	}
	run := comparetest.Run(t, "many", engines...)
	if len(run.Attempts) != 400 {
		t.Fatalf("%d launches", len(run.Attempts))
	}
	page := small(t, run)
	if n := strings.Count(page, " of 20 launches are drawn, to keep the page small"); n != 20 {
		t.Errorf("%d of 20 charts say how many launches they leave out", n)
	}
}

// small is a run's page, which has an end.
func small(t *testing.T, run *record.Run) string {
	t.Helper()
	const most = 3 << 20
	var b bytes.Buffer
	check.Err(t, colours.HTML(&b, compare.Runs(run), run))
	if b.Len() > most {
		t.Errorf("a report of %d launches has %d bytes, at most %d are a page", len(run.Attempts), b.Len(), most)
	}
	return b.String()
}
