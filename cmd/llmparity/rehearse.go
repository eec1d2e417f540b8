package main

import (
	"context"
	"io"

	"llmparity/internal/fault"
	"llmparity/internal/plan"
)

func (f *runFlags) rehearse(ctx context.Context, p plan.Plan, stdout io.Writer) error {
	return fault.New(fault.Usage, "", "not yet")
}
