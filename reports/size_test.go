package reports_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/reports"
)

// A page that is sent by mail or opened on a phone has an end: what is left out of it stands in the run's folder, and the page says so.
func TestAReportOfManyLaunchesStaysSmall(t *testing.T) {
	const most = 3 << 20
	var engines []comparetest.Engine
	for i := range 10 {
		for _, e := range []comparetest.Engine{comparetest.Measured(comparetest.Browser(20), comparetest.Page()), comparetest.Native(20)} {
			e.Cell.ID, e.Cell.PromptID, e.Cell.Prompt = len(engines), i+1, fmt.Sprintf("Prompt %d", i)
			engines = append(engines, e)
		}
	}
	run := comparetest.Run(t, "many", engines...)
	if len(run.Attempts) != 400 {
		t.Fatalf("%d launches", len(run.Attempts))
	}
	var b bytes.Buffer
	if err := reports.HTML(&b, compare.Runs(run), run); err != nil {
		t.Fatal(err)
	}
	if b.Len() > most {
		t.Errorf("a report of 400 launches has %d bytes, at most %d are a page", b.Len(), most)
	}
	if n := strings.Count(b.String(), " of 20 launches are drawn by themselves, so that the page stays small"); n != 20 {
		t.Errorf("%d of 20 charts say how many launches they leave out", n)
	}
}
