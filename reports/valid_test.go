package reports_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/compare/validate"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// What is written is as the published schemas say, whatever was measured and whoever named things.
func TestDocumentsMatchSchemas(t *testing.T) {
	all := cases(t)
	golden(t, "result.json", func(w io.Writer) error { return reports.ResultJSON(w, compare.Runs(all["few"]...)) })
	for name, runs := range all {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			res := compare.Runs(runs...)
			check.Err(t, reports.ResultJSON(&b, res))
			schematest.Valid(t, "result", b.Bytes())
			var back compare.Result
			check.Err(t, json.Unmarshal(b.Bytes(), &back))
			text := func(r *compare.Result) string {
				return rendered(t, func(w io.Writer) error { return reports.JSON(w, r) })
			}
			if text(&back) != text(res) {
				t.Error("read back and written again it differs")
			}
			v := memory.NewValidation()
			for _, run := range runs {
				v.Add(validate.Predictions(run))
				res := compare.Runs(run)
				for _, c := range run.Cells {
					var b bytes.Buffer
					check.Err(t, reports.Profile(&b, res, c.ID))
					schematest.Valid(t, "profile", b.Bytes())
				}
			}
			v.Close()
			b.Reset()
			check.Err(t, reports.JSON(&b, v))
			schematest.Valid(t, "validation", b.Bytes())
		})
	}
}

func TestRunFoldersMatchSchemas(t *testing.T) {
	mixed := comparetest.Browser(3)
	mixed.Warmup, mixed.Failing, mixed.Cut = true, map[int]record.Class{2: record.DeviceLost}, 3
	mixed.Risk = &record.Risk{Level: record.RiskLow,
		Places: []record.Place{{Name: "ram", Level: record.RiskLow, How: "MemAvailable"}}}
	mixed.Prediction = &record.Prediction{Source: "gguf",
		Parts: []record.Predicted{comparetest.Predict(figure.ModelWeights, 4, 4, 4, "f32")}}
	dir := comparetest.Write(t, t.TempDir(), "folder", mixed, comparetest.Served(2), hostile())
	schematest.RunFolder(t, dir)
}

// A schema that takes everything is none.
func TestSchemasAreStrict(t *testing.T) {
	var b bytes.Buffer
	check.Err(t, reports.ResultJSON(&b, compare.Runs(cases(t, "few")["few"]...)))
	for what, change := range map[string]func(map[string]any){
		"a field that nobody knows": func(m map[string]any) { m["cells"].([]any)[0].(map[string]any)["speed"] = 1 },
		"a field less":              func(m map[string]any) { delete(m["cells"].([]any)[0].(map[string]any), "label") },
		"a text for a number":       func(m map[string]any) { m["cells"].([]any)[0].(map[string]any)["run"] = "0" },
		"a list that is null":       func(m map[string]any) { m["warnings"] = nil },
		"another schema":            func(m map[string]any) { m["schema"] = "llmparity.result/0" },
		"no date": func(
			m map[string]any) {
			m["runs"].([]any)[0].(map[string]any)["started"] = "yesterday"
		},
	} {
		var doc map[string]any
		check.Err(t, json.Unmarshal(b.Bytes(), &doc))
		change(doc)
		text, err := json.Marshal(doc)
		check.Err(t, err)
		if schematest.Validator(t, "result")(text) == nil {
			t.Errorf("%s is let through", what)
		}
	}
}
