package damage_test

import (
	"math"
	"slices"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/models/tiny/tinytest"
)

// intact is the tiny model and the default plan's prompt.
func intact(t *testing.T) *damage.Intact {
	t.Helper()
	p, err := plan.Parse(plans.Default, "default.yaml", kinds.All...)
	check.Err(t, err)
	f := tinytest.Tiny(t)
	tokens, _ := tinytest.Oracle(t, f)
	in, err := damage.NewIntact(f, tokens.Encode(p.Prompts[0].Text))
	check.Err(t, err)
	return in
}

// judged fails if a fault has another effect than it must have.
func judged(t *testing.T, name, hidden string, e damage.Effect, tolerance float64) {
	t.Helper()
	t.Logf("%s: other ids: %v, scores %.5f apart", name, e.OtherIDs, e.Apart)
	if hidden == "" && e.Apart <= tolerance {
		t.Errorf("%s: scores are %.5f apart, more than %g must be", name, e.Apart, tolerance)
	}
	if hidden != "" && (e.OtherIDs || e.Apart > tolerance) {
		t.Errorf("%s: other ids: %v, and scores are %g apart, although %s", name, e.OtherIDs, e.Apart, hidden)
	}
}

// tolerance is what a fault must exceed. Noise of 5% must be found in f16.
func tolerance(f damage.Fault) float64 {
	if f.Kind == damage.Loud {
		return damage.Half
	}
	return damage.Tolerance
}

// One of each kind, in the last layer, where least follows. Tests with the tag slow plant all of them.
func TestScoresShowEachKindOfFault(t *testing.T) {
	model := intact(t)
	all := model.All()
	for _, kind := range damage.Kinds() {
		in := []string{"blk.1.attn_output.weight", "blk.1.ffn_norm.weight", ""}
		i := slices.IndexFunc(all, func(f damage.Fault) bool { return f.Kind == kind && slices.Contains(in, f.Tensor) })
		e, err := model.Of(all[i])
		check.Err(t, err)
		judged(t, string(kind)+" in "+all[i].Tensor, "", e, tolerance(all[i]))
	}
	hidden := slices.IndexFunc(all, func(f damage.Fault) bool { return f.Hidden != "" })
	e, err := model.Of(all[hidden])
	check.Err(t, err)
	judged(t, string(all[hidden].Kind)+" in "+all[hidden].Tensor, all[hidden].Hidden, e, damage.Tolerance)
	for _, name := range damage.Names() {
		e, err := model.OfArithmetic(name)
		check.Err(t, err)
		judged(t, name, "", e, damage.Tolerance)
	}
}

// Large attention scores would leave each head one position, so that nothing else mattered.
func TestAttentionScoresAreSmall(t *testing.T) {
	tokens, m := tinytest.Oracle(t, tinytest.Tiny(t))
	largest := 0.0
	for _, p := range tinytest.Prompts() {
		in := tokens.Prompt(p.Text)
		out, _, err := m.Greedy(in, 64)
		check.Err(t, err)
		s := m.Start()
		s.Scored = func(_ int, scores []float64) {
			largest = max(largest, slices.Max(scores), -slices.Min(scores))
		}
		for _, id := range slices.Concat(in, out) {
			s.Step(id, false)
		}
	}
	if math.IsNaN(largest) || largest > 15 || largest < 5 {
		t.Errorf("the largest attention score is %.2f, want 5 to 15", largest)
	}
	t.Logf("the largest attention score is %.2f", largest)
}
