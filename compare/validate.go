package compare

import (
	"context"
	"fmt"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Validate reads every run below a folder, one at a time: their samples are many.
func Validate(ctx context.Context, root string) (*Validation, error) {
	dirs, err := record.Folders(root)
	if err != nil {
		return nil, err
	}
	v := NewValidation()
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		run, err := record.Open(dir)
		if err != nil {
			v.Broken = append(v.Broken, BrokenRun{Dir: dir, Error: fault.OneLine(err.Error())})
			continue
		}
		v.Add(run)
	}
	v.Close()
	if len(v.Cells) > 0 {
		return v, nil
	}
	return nil, nothingPredicted(root, v)
}

// nothingPredicted says why there is nothing to hold against anything.
func nothingPredicted(root string, v *Validation) error {
	why := ""
	if len(v.Absent) > 0 {
		why = " (" + v.Absent[0] + ")"
	}
	if v.Runs == 0 {
		return fault.New(fault.BadRecord, "name a folder that `llmparity run` wrote into",
			"none of the %d run folders below %s can be read: %s", len(v.Broken), root, v.Broken[0].Error)
	}
	broken := ""
	if len(v.Broken) > 0 {
		broken = fmt.Sprintf(", and %d can't be read", len(v.Broken))
	}
	return fault.New(fault.BadRecord, "`llmparity run` foretells and measures",
		"none of the %d runs below %s has a cell whose memory was both foretold and measured%s%s",
		v.Runs, root, why, broken)
}
