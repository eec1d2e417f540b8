//go:build slow

package damage_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny/damage"
)

var update = flag.Bool("update", false, "write the table of docs/reference/faults.md")

const page = "../../../../docs/reference/faults.md"

// part is where a tensor belongs.
func part(tensor string) string {
	switch {
	case tensor == "token_embd.weight":
		return "embedding"
	case tensor == "output_norm.weight":
		return "last norm"
	case tensor == "output.weight":
		return "head"
	case strings.Contains(tensor, ".attn_"):
		return "attention"
	case strings.Contains(tensor, ".ffn_"):
		return "feed-forward"
	}
	return "all layers"
}

// row is what faults of one kind in one part have in common.
type row struct {
	kind, part, hidden string
	planted, ids       int
	scores             int
	least              float64
}

func (r *row) add(e damage.Effect, tolerance float64) {
	r.planted++
	if e.OtherIDs {
		r.ids++
	}
	if e.Apart > tolerance {
		r.scores++
	}
	r.least = min(r.least, e.Apart)
}

func (r *row) String() string {
	why := r.hidden
	if why == "" {
		why = "–"
	}
	return fmt.Sprintf("| %s | %s | %d of %d | %d of %d | %.4f | %s |\n", r.kind, r.part, r.ids, r.planted, r.scores, r.planted,
		r.least, why)
}

// All faults, and the table of what finds them, which -update writes.
func TestPageSaysWhatFindsFaults(t *testing.T) {
	in := intact(t)
	var rows []*row
	of := func(kind, part, hidden string) *row {
		for _, r := range rows {
			if r.kind == kind && r.part == part && r.hidden == hidden {
				return r
			}
		}
		rows = append(rows, &row{kind: kind, part: part, hidden: hidden, least: math.Inf(1)})
		return rows[len(rows)-1]
	}
	for _, kind := range damage.Kinds() {
		for _, f := range in.All() {
			if f.Kind != kind {
				continue
			}
			e, err := in.Of(f)
			check.Err(t, err)
			judged(t, string(f.Kind)+" in "+f.Tensor, f.Hidden, e, tolerance(f))
			of(string(f.Kind), part(f.Tensor), f.Hidden).add(e, damage.Tolerance)
		}
	}
	for _, name := range damage.Names() {
		e, err := in.OfArithmetic(name)
		check.Err(t, err)
		judged(t, name, "", e, damage.Tolerance)
		of(says[name], "all layers", "").add(e, damage.Tolerance)
	}
	var b strings.Builder
	b.WriteString("| fault | where | found by ids | found by scores | smallest difference of scores | why nothing finds it |\n" +
		"|---|---|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(r.String())
	}
	upToDate(t, b.String())
}

var says = map[string]string{
	damage.Shifted:  "keys shifted against values by one position",
	damage.SkipLast: "a decode step that skips the last key",
	damage.Scale:    "attention scores × 1.002",
}

// upToDate compares the page's table.
func upToDate(t *testing.T, table string) {
	t.Helper()
	text := string(check.Read(t, page))
	const start, end = "<!-- faults: start -->\n", "<!-- faults: end -->"
	before, rest, ok := strings.Cut(text, start)
	_, after, closed := strings.Cut(rest, end)
	want := before + start + table + end + after
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no marks %q and %q", page, start, end)
	case want == text:
	case *update:
		check.Err(t, os.WriteFile(page, []byte(want), 0o644))
	default:
		t.Errorf("%s is out of date: go test -tags slow ./internal/models/tiny/damage -run Page -update", page)
	}
}
