package figure

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/record"
)

// Columns of summary.csv keep their places: a new one comes last. No two figures share a name that people type.
func TestColumnsAreNumbered(t *testing.T) {
	typed := map[string]string{}
	for i, r := range Columns(Any) {
		if r.Column.Place != i+1 || r.Column.Name == "" || r.Column.What == "" || r.Title == "" {
			t.Errorf("%s: %+v, want place %d, a name and a meaning", r.Name, r.Column, i+1)
		}
		for _, name := range []string{r.Name, r.Column.Name} {
			if of, taken := typed[name]; taken && of != r.Name {
				t.Errorf("%s is the name of %s and of %s", name, of, r.Name)
			}
			typed[name] = r.Name
		}
		if by, err := Find(r.Column.Name); err != nil || by != r {
			t.Errorf("%s: %v", r.Column.Name, err)
		}
		if r.Bench != "" && r.Better == Neither {
			t.Errorf("%s: benchstat needs to know which way is better", r.Name)
		}
		if r.Bench != "" && r.Base() == 1 &&
			!slices.Contains([]string{"bytes", "s", "tokens/s", "requests/s"}, r.Unit) {
			t.Errorf("%s: benchstat's figures are in base units, but Base does not know %q", r.Name, r.Unit)
		}
	}
	names := map[string]bool{}
	for _, r := range Rows(Any) {
		if names[r.Name] {
			t.Errorf("two rows of %s", r.Name)
		}
		names[r.Name] = true
	}
}

// Decode is what its definition says, also of tokens that arrive in one event: a token for each that arrives later than
// the first, over the time until the last.
func TestDecodeIsWhatItsDefinitionSays(t *testing.T) {
	if row := New(DecodeTPS); !strings.HasPrefix(row.How, Later+" / (time of the last token - time of the first token)") {
		t.Errorf("decode is defined as %q", row.How)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		r := &record.Request{Spans: []record.NamedSpan{{Name: record.Decode}}}
		at, later := int64(1e9), 0
		for n := range 2 + random.IntN(60) {
			if random.IntN(3) > 0 {
				at += 1 + random.Int64N(1e8)
			}
			r.Tokens = append(r.Tokens, record.TokenRow{Index: n, ID: n, NS: at})
			if at > r.Tokens[0].NS {
				later++
			}
		}
		if later == 0 {
			continue
		}
		seconds := float64(at-r.Tokens[0].NS) / 1e9
		if got := New(DecodeTPS).Request(r); math.Abs(got*seconds-float64(later)) > 1e-6 {
			t.Errorf("%v tokens/s in %v s, for %d tokens later than the first", got, seconds, later)
		}
		if got := PerToken(r); math.Abs(got*float64(later)-1e3*seconds) > 1e-6 {
			t.Errorf("%v ms per token in %v s, for %d tokens", got, seconds, later)
		}
	}
}
