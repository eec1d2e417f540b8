package reports_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/compare/validate"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports"
)

// sweep is a validation of two runs, one of which has nothing to hold against anything, and a broken folder.
func sweep(t *testing.T) *memory.Validation {
	v := memory.NewValidation()
	for _, run := range []*record.Run{cases(t, "predicted")["predicted"][0],
		comparetest.Run(t, "before", comparetest.Native(1)), comparetest.Run(t, "hostile", predictedHostile())} {
		v.Add(validate.Predictions(run))
	}
	v.Broken = append(v.Broken, memory.BrokenRun{Dir: "results/broken",
		Error: "results/broken/run.json: unexpected end of JSON input"})
	v.Close()
	return v
}

// predictedHostile has an attack in all that reaches a validation.
func predictedHostile() comparetest.Engine {
	e := hostile()
	e.Cell.Engine = "e|" + attack
	e.Prediction = &record.Prediction{Source: attack, Notes: []string{attack}, Setup: map[string]string{attack: attack},
		Parts: []record.Predicted{{Name: figure.ModelWeights, Low: 1, Best: 9 << 20, High: 10 << 20, DType: attack,
			Method: attack, Confidence: attack}}}
	return e
}

func TestValidationTables(t *testing.T) {
	v := sweep(t)
	golden(t, "validation.txt", func(w io.Writer) error { return reports.ValidationTable(w, v) })
	golden(t, "validation.md", func(w io.Writer) error { return reports.ValidationMarkdown(w, v) })
	var b bytes.Buffer
	if err := reports.JSON(&b, v); err != nil || !json.Valid(b.Bytes()) ||
		!strings.Contains(b.String(), `"bias_percent"`) {
		t.Errorf("%v %s", err, b.String())
	}
}
