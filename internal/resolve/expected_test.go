package resolve

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/prompts"
	"llmparity/internal/tiny/reference"
)

var update = flag.Bool("update", false, "write expected.json anew")

// sureMargin is by how much the first logit must lead the second for a token to be expected of every engine: far more
// than what rounding moves in single precision. In half precision, and where sums are in another order with it, what is
// said depends on all before.
const sureMargin = 0.5

// The texts and lengths that built-in plans ask the tiny model for.
func TestExpectedTokensAreTheReferences(t *testing.T) {
	m, err := (model.Finder{}).Find(t.Context(), model.Tiny, 1024)
	if err != nil {
		t.Fatal(err)
	}
	tokens, oracle, err := reference.Open(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"The quick brown fox jumps over the lazy dog."}
	for _, n := range []int{8, 32, 64, 128, 256} {
		text, err := prompts.OfLength(tokens, n, 0)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	var want []certainty
	for _, text := range texts {
		in := tokens.Encode(text)
		ids, margins, err := oracle.Greedy(in, 64)
		if err != nil {
			t.Fatal(err)
		}
		for i, margin := range margins {
			if margin < sureMargin {
				ids = ids[:i]
				break
			}
		}
		want = append(want, certainty{text, len(in), ids})
	}
	if *update {
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("expected.json", b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := certainties(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("expected.json (%v) has other tokens than the reference; write it anew with -update", err)
	}
}

func TestExpected(t *testing.T) {
	m, err := (model.Finder{}).Find(t.Context(), model.Tiny, 1024)
	if err != nil {
		t.Fatal(err)
	}
	const known, other = "The quick brown fox jumps over the lazy dog.", "Another text."
	p := plan.Plan{MaxTokens: 40, Context: 1024, Prompts: []string{known, other}}
	got, err := expected(setupOf(m, p))
	if err != nil || len(got) != 1 || len(got[known]) != p.MaxTokens {
		t.Errorf("of the tiny model: %v, %v", got, err)
	}
	small, half := p, p
	small.Context, half.DType = 50, "f16"
	for name, s := range map[string]*Setup{"does not fit": setupOf(m, small), "half precision": setupOf(m, half),
		"another model": setupOf(engine.Model{}, p)} {
		if got, err := expected(s); len(got) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// setupOf asks each text of a plan once.
func setupOf(m engine.Model, p plan.Plan) *Setup {
	s := &Setup{Setup: plan.Setup{Plan: p}, Model: m}
	for i, prompt := range p.Prompts {
		s.Shapes = append(s.Shapes, plan.Shape{PromptID: i + 1, Prompt: prompt, MaxTokens: p.MaxTokens})
	}
	return s
}
