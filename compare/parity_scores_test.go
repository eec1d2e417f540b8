package compare_test

import (
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/parity"
	"llmparity/internal/record"
)

// opinion makes scores of a text: at each place the engine is sure of what stands there, but for those where it would
// have said another token, so far ahead of it.
func opinion(text []int, other map[int]int, ahead float64, shift float64) []record.Score {
	var out []record.Score
	for i, id := range text {
		s := record.Score{Position: i, Forced: id, LogProb: -0.1 - shift,
			Top: []record.Candidate{{ID: id, LogProb: -0.1 - shift}, {ID: 900, LogProb: -3.1 + shift},
				{ID: 901, LogProb: -4.5}}}
		if o, differs := other[i]; differs {
			s.Top = []record.Candidate{{ID: o, LogProb: -0.6}, {ID: id, LogProb: -0.6 - ahead},
				{ID: 901, LogProb: -4.5}}
			s.LogProb = -0.6 - ahead
		}
		out = append(out, s)
	}
	return out
}

// scored makes two engines whose texts part at the seventh token, and that scored llamacpp's text. One has a float16 KV
// cache, which turns ties of up to 0.1.
func scored() (web, llama comparetest.Engine) {
	web, llama = comparetest.Browser(1), comparetest.Native(1)
	web.IDs[6] = 511
	llama.Info.Policy["kv_dtype"] = "f16"
	text := record.Scoring{Reference: llama.Cell.ID, Attempt: 2, PromptIDs: llama.PromptIDs, Top: 3}
	web.Scored, llama.Scored = text, text
	web.Scores = opinion(llama.IDs, map[int]int{6: 511}, 0.03, 0.01)
	llama.Scores = opinion(llama.IDs, nil, 0, 0)
	llama.Scores[6].Top[0].LogProb, llama.Scores[6].LogProb = -0.6, -0.6
	llama.Scores[6].Top[1] = record.Candidate{ID: 511, LogProb: -0.65}
	return web, llama
}

func parting(t *testing.T, change func(web, llama *comparetest.Engine)) *compare.Result {
	t.Helper()
	web, llama := scored()
	if change != nil {
		change(&web, &llama)
	}
	return compare.Runs(comparetest.Run(t, "parting", web, llama))
}

func TestNearTiesAreRounding(t *testing.T) {
	r := parting(t, nil)
	p := r.Parity[0]
	d := p.First
	if d == nil || d.Index != 6 || d.MarginA == nil || d.MarginB == nil || math.Abs(d.MarginA.Nats-0.03) > 1e-9 ||
		math.Abs(d.MarginB.Nats-0.05) > 1e-9 {
		t.Fatalf("%+v", d)
	}
	want := "there the top two are 0.030 for webllm and 0.050 for llamacpp apart: a float16 KV cache explains it (up to 0.200)"
	said := answer.Of(r).Output.Sentence()
	if d.Words != want || !strings.HasSuffix(p.Verdict, "; "+want) || !strings.Contains(said, want) {
		t.Errorf("%q; verdict %q, answer %q", d.Words, p.Verdict, said)
	}
	f := p.Forced
	if f == nil || f.Positions != 64 || f.Agreed != 63 || f.OwnA != 63 || f.OwnB != 64 || f.Of != "llamacpp" ||
		len(f.Differing) != 1 || f.Differing[0].Index != 6 {
		t.Fatalf("%+v", f)
	}
	if f.Share != 63./64 || f.Distance.Compared != 64*3 || math.Abs(f.Distance.Max-0.05) > 1e-9 &&
		math.Abs(f.Distance.Max-0.03) > 1e-9 {
		t.Errorf("%+v %+v", f, f.Distance)
	}
	m := r.Matrices[0]
	if len(r.Matrices) != 1 || len(m.Cells) != 2 || m.Rows[0][1] != m.Rows[1][0] ||
		m.Rows[0][1].State != parity.Parting ||
		m.Rows[0][1].Text != "6 of 64, 0.050 apart" || m.Rows[0][1].Forced != "forced: 63 of 64" ||
		m.Rows[0][0].State != parity.ByItself {
		t.Errorf("%+v", r.Matrices)
	}
}

func TestSeveralPairsWithDifferentOutput(t *testing.T) {
	three := func(asked bool) string {
		web, llama := scored()
		third := comparetest.Native(1)
		third.Cell.ID, third.Cell.Engine, third.Info.Name = 3, "other", "other"
		third.Info.Policy["kv_dtype"] = "f16"
		if !asked {
			web.Scores, llama.Scores = nil, nil
		}
		return answer.Of(compare.Runs(comparetest.Run(t, "three", web, llama, third))).Output.Sentence()
	}
	const same = "Output: Same tokens in 1 of 3 pairs. 1 of 3 pairs generated identical tokens from the same weights and prompt, but not " +
		"webllm with llamacpp; webllm with other"
	if got := three(true); got != same+"; of 2 that differ, rounding explains 2; scores not checked." {
		t.Error(got)
	}
	if got := three(false); got != same+"; scores not checked." {
		t.Error(got)
	}
}

// What isn't known to be a near tie is not called rounding.
func TestNothingElseIsCalledRounding(t *testing.T) {
	for name, c := range map[string]struct {
		change func(web, llama *comparetest.Engine)
		words  string
		absent string
	}{
		"a wide margin": {func(web, llama *comparetest.Engine) {
			web.Scores = opinion(llama.IDs, map[int]int{6: 511}, 2.5, 0.01)
		}, "0.050 for llamacpp apart: more than a float16 KV cache explains (up to 0.200)", ""},
		"a wide margin in float16": {func(web, llama *comparetest.Engine) {
			web.Info.Policy["activations_dtype"] = "f16"
			web.Scores = opinion(llama.IDs, map[int]int{6: 511}, 2.5, 0.01)
		}, "more than a float16 KV cache and float16 activations explain", ""},
		"a near tie in float32": {func(web, llama *comparetest.Engine) {
			llama.Info.Policy["kv_dtype"] = "f32"
		}, "0.050 for llamacpp apart: more than float32 explains (up to 0.002)", ""},
		"chunks that MLC's kernel merges": {func(web, llama *comparetest.Engine) {
			web.Info.Library.Kernels = record.MLCKernels
			web.Info.Policy["prefill_chunk"] = "2"
			web.Scores = opinion(llama.IDs, map[int]int{6: 511}, 2.5, 0.01)
		}, "explain (up to 0.200); the kernel with which webllm merges a prompt's chunks of 2 tokens lacks a barrier", ""},
		"one chunk": {func(web, llama *comparetest.Engine) {
			web.Info.Library.Kernels = record.MLCKernels
			web.Info.Policy["prefill_chunk"] = "128"
			web.Scores = opinion(llama.IDs, map[int]int{6: 511}, 2.5, 0.01)
		}, "more than sines of a shader and a float16 KV cache explain (up to 0.200)", ""},
		"everything differs": {func(web, llama *comparetest.Engine) {
			web.Scores = opinion(llama.IDs, map[int]int{6: 511}, 0.5, 0.4)
		}, "0.500 for webllm and 0.050 for llamacpp apart: more than a float16 KV cache explains", ""},
		"one side alone": {func(web, llama *comparetest.Engine) { web.Scores = nil },
			"are 0.050 for llamacpp apart: a float16 KV cache explains it", ""},
		"asked again": {func(web, llama *comparetest.Engine) { web.Scores = opinion(llama.IDs, nil, 0, 0.01) },
			"scored again, webllm prefers", ""},
		"a near tie of another token": {func(web, llama *comparetest.Engine) {
			llama.Scores[6].Top[1].ID = 902
			llama.Scores[6].Top[2].ID = 511
		}, "apart (511 is 3.900 below the most likely token for llamacpp): more than a float16 KV cache explains", ""},
		"a near tie, and nothing told of the other token": {func(web, llama *comparetest.Engine) {
			llama.Scores[6].Top[1].ID = 902
		}, "511 is at least 3.900 below the most likely token for llamacpp): more than a float16 KV cache explains", ""},
		"nobody asked": {func(web, llama *comparetest.Engine) { web.Scores, llama.Scores = nil, nil },
			"", "neither engine scored a text"},
		"another text": {func(web, llama *comparetest.Engine) {
			third := append([]int{1000}, llama.IDs[1:]...)
			web.Scores, llama.Scores = opinion(third, nil, 0, 0), opinion(third, nil, 0, 0)
		}, "", "the scored text differs before that token"},
		"another prompt": {func(web, llama *comparetest.Engine) { web.PromptIDs = []int{5, 6, 7, 8} },
			"", "the prompt was tokenized differently"},
	} {
		p := parting(t, c.change).Parity[0]
		if !strings.Contains(p.First.Words, c.words) || c.words == "" && p.First.Words != "" ||
			!strings.Contains(p.First.Unknown, c.absent) {
			t.Errorf("%s: %q (%q), want %q (%q)", name, p.First.Words, p.First.Unknown, c.words, c.absent)
		}
		if rounding := strings.Contains(p.Verdict, "explains it"); rounding != strings.Contains(
			c.words, "explains it") {
			if name != "asked again" {
				t.Errorf("%s: %q", name, p.Verdict)
			}
		}
	}
}

func TestUnforced(t *testing.T) {
	for name, c := range map[string]struct {
		change func(web, llama *comparetest.Engine)
		why    string
	}{
		"nobody": {func(web, llama *comparetest.Engine) { web.Scores, llama.Scores = nil, nil },
			"neither engine scored a text"},
		"one": {func(web, llama *comparetest.Engine) { web.Scores = nil }, "webllm scored none"},
		"no ids": {func(web, llama *comparetest.Engine) { web.Scores, web.Cell.NoTokenIDs = nil, true },
			"webllm reports no token ids"},
		"other prompts": {func(web, llama *comparetest.Engine) { web.Scored.PromptIDs = []int{1} },
			"different prompts"},
	} {
		p := parting(t, c.change).Parity[0]
		if p.Forced != nil || !strings.Contains(p.Unforced, c.why) {
			t.Errorf("%s: %+v, %q", name, p.Forced, p.Unforced)
		}
	}
}

// Distances are those of the distributions: computed here from whole ones, of which the record has the likeliest tokens
// alone.
func TestDistanceIsALowerBound(t *testing.T) {
	const vocab, top = 40, 6
	p, q := distribution(vocab, 1.0), distribution(vocab, 1.3)
	exact := 0.0
	for i := range p {
		exact += math.Exp(p[i]) * (p[i] - q[i])
	}
	score := func(of []float64) record.Score {
		s := record.Score{Forced: 30, LogProb: of[30]}
		for i := range top {
			s.Top = append(s.Top, record.Candidate{ID: i, LogProb: of[i]})
		}
		return s
	}
	r := parting(t, func(web, llama *comparetest.Engine) {
		web.Scores, llama.Scores = []record.Score{score(p)}, []record.Score{score(q)}
	})
	f := r.Parity[0].Forced
	worst, sum := 0.0, 0.0
	for _, i := range []int{0, 1, 2, 3, 4, 5, 30} {
		worst, sum = max(worst, math.Abs(p[i]-q[i])), sum+math.Abs(p[i]-q[i])
	}
	if d := f.Distance; d.Compared != 7 || math.Abs(d.Max-worst) > 2e-6 || math.Abs(d.Mean-sum/7) > 2e-6 ||
		d.KLMean <= 0 || d.KLMean > exact || d.KLMean < exact/2 {
		t.Errorf("%+v; the whole distributions: max %g, mean %g, KL %g", d, worst, sum/7, exact)
	}
}

// distribution falls off geometrically.
func distribution(n int, steep float64) []float64 {
	sum := 0.0
	for i := range n {
		sum += math.Exp(-steep * float64(i) / 3)
	}
	var out []float64
	for i := range n {
		out = append(out, -steep*float64(i)/3-math.Log(sum))
	}
	return out
}
