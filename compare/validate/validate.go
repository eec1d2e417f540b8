// Package validate compares predicted with measured memory, over all runs below a folder. Runs that it can't read are
// listed, and the others count.
package validate

import (
	"context"
	"fmt"

	"llmparity/compare"
	"llmparity/compare/memory"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
)

// Runs reads every run below a folder, one at a time: their samples are many.
func Runs(ctx context.Context, root string) (*memory.Validation, error) {
	dirs, err := runfolder.Below(root)
	if err != nil {
		return nil, err
	}
	v := memory.NewValidation()
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		run, err := record.Open(dir)
		if err != nil {
			v.Broken = append(v.Broken, memory.BrokenRun{Dir: dir, Error: fault.OneLine(err.Error())})
			continue
		}
		v.Add(Predictions(run))
	}
	v.Close()
	if len(v.Cells) > 0 {
		return v, nil
	}
	return nil, nothingPredicted(root, v)
}

// Predictions lists a run's cells that have a prediction.
func Predictions(run *record.Run) []memory.PredictedCell {
	res := compare.Runs(run)
	var out []memory.PredictedCell
	for _, c := range res.Cells {
		if c.Prediction != nil {
			out = append(out, memory.PredictedCell{Dir: run.Dir, Label: c.Label, Engine: c.Spec.Engine,
				Model: c.Spec.Model.Name, Context: c.Context(), Prediction: *c.Prediction})
		}
	}
	return out
}

// nothingPredicted says why there is nothing to validate.
func nothingPredicted(root string, v *memory.Validation) error {
	if v.Runs == 0 {
		return fault.New(fault.BadRecord, "name a folder that `llmparity run` wrote",
			"%s: none of the %d run folders can be read: %s", root, len(v.Broken), v.Broken[0].Error)
	}
	words := fmt.Sprintf("%s: none of the %d runs has a cell whose memory was both predicted and measured", root, v.Runs)
	if len(v.Absent) > 0 {
		words += " (" + v.Absent[0] + ")"
	}
	if len(v.Broken) > 0 {
		words += fmt.Sprintf("; %d cannot be read", len(v.Broken))
	}
	return fault.New(fault.BadRecord, "`llmparity run` predicts and measures", "%s", words)
}
