package history

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/schematest"
)

// TestCellsBeside: a control cell as noisy as the cells hides a step that shows beside five other cells.
func TestCellsBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	s := &Store{"memory", &memory{texts: map[string][]byte{}}}
	for day := range 75 {
		run := made(day, 20, 50, r)
		run.Launches = nil
		for cell := range 7 {
			if cell > 1 {
				name := string(rune('a' + cell))
				run.Cells = append(run.Cells, Cell{Key: "engine=webllm; prompt=" + name,
					Label: "WebLLM, tiny, prompt " + name, Engine: "WebLLM", Control: new(1)})
			}
			speed := 20 * math.Exp(0.03*r.NormFloat64())
			if cell == 0 && day >= 70 {
				speed *= 0.88
			}
			for n := 1; n <= 6; n++ {
				run.Launches = append(run.Launches, Launch{cell, n,
					[]float64{speed * math.Exp(0.02*r.NormFloat64()), 300, 1}})
			}
		}
		_, err := s.Add(t.Context(), run)
		check.Err(t, err)
	}
	rep := report(t, s)
	if len(rep.Findings) != 1 || rep.Alarms() != 1 || !rep.Findings[0].Beside || rep.Findings[0].Runs != 5 {
		t.Fatalf("%d alarms: %+v", rep.Alarms(), rep.Findings)
	}
	var text strings.Builder
	check.Err(t, rep.Text(&text))
	check.Has(t, text.String(), "of the ratio to the cells beside it")
	document, err := json.Marshal(rep)
	check.Err(t, err)
	schematest.Valid(t, "history-check", document)
}
