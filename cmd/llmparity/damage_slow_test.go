//go:build slow

package main

import (
	"slices"
	"testing"

	"llmparity/internal/tiny/damage"
)

// One fault of each kind, in the last tensor that can have it, and one that nothing finds.
func TestScoresShowEachKindOfFaultInWebLLM(t *testing.T) {
	t.Parallel()
	in := intactModel(t)
	all := in.All()
	slices.Reverse(all)
	for _, kind := range damage.Kinds() {
		of := func(f damage.Fault) bool { return f.Kind == kind && f.Hidden == "" }
		f := all[slices.IndexFunc(all, of)]
		if apart := inWebLLM(t, in, f); apart <= damage.Tolerance {
			t.Errorf("%s in %s: scores are %.5f apart", f.Kind, f.Tensor, apart)
		}
	}
	f := all[slices.IndexFunc(all, func(f damage.Fault) bool { return f.Hidden != "" })]
	if apart := inWebLLM(t, in, f); apart > damage.Tolerance {
		t.Errorf("%s in %s: scores are %.5f apart, although %s", f.Kind, f.Tensor, apart, f.Hidden)
	}
}
