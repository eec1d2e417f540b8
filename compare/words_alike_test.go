package compare_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// A server that ran already and one of our own, on the same file: their words are compared, their figures are not.
func TestOutputsAreComparedWithoutRatios(t *testing.T) {
	of := func(change func(e *comparetest.Engine)) *compare.Result {
		ours, server := comparetest.Native(6), comparetest.Served(6)
		server.Cell.Isolation, server.Usage = record.OfServer, nil
		server.Text = ours.Text
		change(&server)
		return compare.Runs(comparetest.Run(t, "words", ours, server))
	}
	r := of(func(*comparetest.Engine) {})
	if len(r.Parity) != 1 || !r.Parity[0].Identical || !r.Parity[0].ByText || len(r.Parity[0].Unverified) != 0 {
		t.Fatalf("parity: %+v", r.Parity)
	}
	if c := r.Comparisons[0]; len(c.Ratios) != 0 ||
		!strings.Contains(c.Refused, "not comparable here: isolation differs: launch and server") {
		t.Errorf("ratios: %+v", c)
	}
	warned := of(func(e *comparetest.Engine) {
		e.Warnings = []record.Warning{{Code: "weights-unverified", Text: "its weights are not verified"}}
	})
	if p := warned.Parity[0]; !p.Identical ||
		!strings.HasSuffix(p.Verdict, "; weights not verified: served, server") {
		t.Errorf("weights that nobody has verified: %+v", p)
	}
	if !strings.Contains(said(warned, "Output"), "not verified") {
		t.Errorf("verdict: %q", warned.Verdict)
	}
}

// Of a model that only servers have there is a name to go by.
func TestServedModelsAreComparedByText(t *testing.T) {
	a, b := comparetest.Served(6), comparetest.Served(6)
	b.Cell.ID, b.Cell.Engine = 4, "other"
	for _, e := range []*comparetest.Engine{&a, &b} {
		e.Cell.Model = record.Model{Name: "large", Format: "served"}
	}
	r := compare.Runs(comparetest.Run(t, "served", a, b))
	if len(r.Parity) != 1 || !r.Parity[0].Identical || len(r.Parity[0].Unverified) != 2 {
		t.Fatalf("parity: %+v", r.Parity)
	}
	if c := r.Comparisons[0]; len(c.Ratios) != 0 || !strings.Contains(c.Refused, "not verified") {
		t.Errorf("%+v", c)
	}
	b.Cell.Model.Name = "small"
	if r := compare.Runs(comparetest.Run(t, "two", a, b)); len(r.Parity) != 0 {
		t.Errorf("of two models: %+v", r.Parity)
	}
}
