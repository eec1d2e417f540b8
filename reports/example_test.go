package reports_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// A renderer is a function from a result to bytes. JSON is for programs, in any language.
func ExampleResultJSON() {
	dir, remove := comparetest.Example()
	defer remove()
	run, err := record.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	if err := reports.ResultJSON(&out, compare.Runs(run)); err != nil {
		fmt.Println(err)
		return
	}
	var result struct {
		Cells []struct {
			Label   string
			Figures []struct {
				Name, Unit string
				Median     *float64
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range result.Cells[0].Figures {
		if f.Name == "ttft" {
			fmt.Println(result.Cells[0].Label, f.Name, *f.Median, f.Unit)
		}
	}
	// Output:
	// llamacpp ttft 8.887667 ms
}
