package webllm

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"llmparity/browser"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/modellib"
)

// samplingPage runs a library's sampling functions in the page on given tensors.
//
//go:embed testdata/sampling.js
var samplingPage string

// samplingCase is a distribution and what to draw from it.
type samplingCase struct {
	name        string
	temperature float32
	logit       func(r *rand.Rand, i, vocab int) float64
}

func normal(deviation float64) func(*rand.Rand, int, int) float64 {
	return func(r *rand.Rand, _, _ int) float64 { return deviation * r.NormFloat64() }
}

const greedy = 1e-6 // WebLLM's value for temperature 0

var samplingCases = []samplingCase{
	{"greedy", greedy, normal(2)},
	{"random", 1, normal(2.5)},
	{"equal", 1, func(*rand.Rand, int, int) float64 { return 1.5 }},
	{"sharp", 0.7, normal(4)},
	{"flat", 2, normal(1)},
	{"ties", 1, func(r *rand.Rand, _, _ int) float64 { return float64(r.IntN(6) - 3) }},
	// the head is the last tokens
	{"displaced", 1, func(_ *rand.Rand, i, vocab int) float64 { return float64(3 * ((i + 64) / vocab)) }},
	{"greedy ties", greedy, func(r *rand.Rand, i, _ int) float64 { return float64(min(i%97, 1)) }},
	{"one", 1, func(_ *rand.Rand, i, vocab int) float64 { return 100 * float64((i+1)/vocab) }}, // the last
	{"masked", 0.7, func(r *rand.Rand, _, _ int) float64 {
		return cmp.Or(float64(r.IntN(3)/2)*-math.MaxFloat32, 2*r.NormFloat64())
	}},
	// in one group of the sort
	{"crowded", 1, func(r *rand.Rand, i, _ int) float64 { return 9*float64(1-min(i%1024, 1)) + r.Float64() }},
}

var topPs = []float32{0.1, 0.5, 0.9, 0.95, 0.999, 1}

// TestSampling compares the library's sampling functions in the browser with a reference in float64.
func TestSampling(t *testing.T) {
	s := loaded(t) // in addition to the model's library, on its device
	_, err := browser.Call[bool](watched(t), s.Page, samplingPage)
	check.Err(t, err)
	software := modellib.Variant{Kernels: "software", Sort: "partial"}
	for _, x := range []struct {
		vocab   int
		variant modellib.Variant
		cases   []samplingCase
		draws   int // for each distribution and top-p
	}{
		{512, software, samplingCases, 16},
		{1500, modellib.Variant{Kernels: "software", Sort: "full"}, samplingCases, 16},
		{1500, software, samplingCases, 16},
		{20011, modellib.Variant{Kernels: "gpu", Sort: "partial"}, samplingCases, 2},
		{128256, software, samplingCases[:3], 0},
	} {
		if x.vocab > 10000 && !check.Slow { // other kernels, and more groups in the sort
			x.cases = x.cases[:3]
		}
		if x.vocab > 100000 && !check.Slow {
			continue
		}
		t.Run(fmt.Sprintf("%d tokens, %s", x.vocab, x.variant), func(t *testing.T) {
			testSampling(t, s, x.vocab, x.variant, x.cases, x.draws)
		})
	}
}

func testSampling(t *testing.T, s *session, vocab int, v modellib.Variant, cases []samplingCase, draws int) {
	shape := modellib.Shape{
		ModelType: "llama", DType: "float32", HiddenSize: 8, IntermediateSize: 8, NumHiddenLayers: 1,
		NumAttentionHeads: 1,
		NumKeyValueHeads:  1, HeadDim: 8, VocabSize: vocab, RopeTheta: 10000, RMSNormEps: 1e-5, TieWordEmbeddings: true,
		ContextWindowSize: 32, PrefillChunkSize: 32,
	}
	lib, err := modellib.Build(t.Context(), modellib.FindTools(cache.Dir(os.Getenv), os.Getenv), shape, v, nil)
	check.Err(t, err)
	offer, err := s.site.offer(Package{Dir: files.pack.Dir, Library: Library{Path: lib.Path}})
	check.Err(t, err)
	library := s.Base() + "/" + offer + "/library.wasm"
	_, err = browser.CallWith[bool](watched(t), s.Page, "sampling.load", library)
	check.Err(t, err)
	uniforms := []float32{0, 0x1.fffffep-1}
	for i := range draws {
		uniforms = append(uniforms, (float32(i)+0.5)/float32(draws))
	}
	head := vocab // must be sorted
	if v.Sort == "partial" && vocab > 1024 {
		head = 64
	}
	for _, c := range cases {
		r := rand.New(rand.NewPCG(1, uint64(vocab)))
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = float32(c.logit(r, i, vocab))
		}
		answer, err := browser.CallWith[sampled](watched(t), s.Page, "sampling.run", map[string]any{
			"logits": encode(t, logits), "temperature": c.temperature, "topPs": topPs, "uniforms": uniforms})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		d := distribution{t, c.name, decode[float32](t, answer.Probs), nil, nil, nil, head}
		d.checkSoftmax(logits, float64(c.temperature))
		d.checkOrder(decode[float32](t, answer.Sorted), decode[int32](t, answer.Order))
		for i, p := range topPs {
			d.checkDraws(p, uniforms, answer.Tokens[i])
		}
	}
}

// sampled is the page's answer: arrays as base64, and for each top-p one token per uniform number.
type sampled struct {
	Probs, Sorted, Order string
	Tokens               [][]int
}

// distribution is a row of probabilities from the page. order is the correct one, rank each token's place in it, and
// mass[i] the sum of the first i tokens.
type distribution struct {
	t     *testing.T
	name  string
	probs []float32
	order []int32
	rank  []int
	mass  []float64
	head  int
}

func (d *distribution) checkSoftmax(logits []float32, temperature float64) {
	most := float64(slices.Max(logits))
	var total, sum float64
	for _, l := range logits {
		total += math.Exp((float64(l) - most) / temperature)
	}
	for i, l := range logits {
		want := math.Exp((float64(l)-most)/temperature) / total
		got := float64(d.probs[i])
		if !(math.Abs(got-want) <= 1e-4*want+1e-30) {
			d.t.Errorf("%s: token %d has probability %g, want %g", d.name, i, got, want)
			break
		}
		sum += got
	}
	if math.Abs(sum-1) > 1e-5 {
		d.t.Errorf("%s: the probabilities sum up to %g", d.name, sum)
	}
}

func (d *distribution) checkOrder(sorted []float32, order []int32) {
	d.order = make([]int32, len(d.probs))
	for i := range d.order {
		d.order[i] = int32(i)
	}
	slices.SortFunc(d.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(d.probs[b], d.probs[a]), cmp.Compare(a, b))
	})
	d.rank, d.mass = make([]int, len(d.order)), make([]float64, len(d.order)+1)
	for i, token := range d.order {
		d.rank[token], d.mass[i+1] = i, d.mass[i]+float64(d.probs[token])
	}
	if !slices.Equal(order[:d.head], d.order[:d.head]) {
		d.t.Errorf("%s: the head is %v, want %v", d.name, order[:min(d.head, 64)], d.order[:min(d.head, 64)])
	}
	seen := make([]bool, len(order))
	for i, token := range order {
		if token < 0 || int(token) >= len(seen) || seen[token] || sorted[i] != d.probs[token] {
			d.t.Errorf("%s: not a permutation: place %d has token %d with probability %g", d.name, i, token, sorted[i])
			return
		}
		seen[token] = true
	}
}

// slack is the possible error of float32 sums, as a mass.
const slack = 2e-5

// checkDraws checks that every token is in the nucleus, and that the first tokens are drawn as often as their
// probability. If the nucleus is in the head, each uniform number must select its exact token.
func (d *distribution) checkDraws(topP float32, uniforms []float32, tokens []int) {
	least, size, most := len(d.order), len(d.order), len(d.order)
	if topP < 1 { // rounding may move the end
		least, size, most = d.reach(float64(topP)-slack), d.reach(float64(topP)), d.reach(float64(topP)+slack)
	}
	inHead, expected := 0, min(d.mass[d.head]/d.mass[size], 1)
	for i, token := range tokens {
		if token < 0 || token >= len(d.rank) || d.rank[token] >= most || d.probs[token] == 0 {
			d.t.Errorf("%s, top-p %g, uniform %g: token %d is not in the nucleus of %d", d.name, topP, uniforms[i],
				token, size)
			continue
		}
		r, goal := d.rank[token], float64(uniforms[i])*d.mass[least]
		if r < d.head {
			inHead++
		}
		exact := most <= d.head || topP == 1 && goal < d.mass[d.head]-slack
		if exact && (d.mass[r] > float64(uniforms[i])*d.mass[most]+slack || d.mass[r+1] < goal-slack) {
			d.t.Errorf("%s, top-p %g, uniform %g: got the token of rank %d, whose mass is from %g to %g",
				d.name, topP, uniforms[i], r, d.mass[r], d.mass[r+1])
		}
	}
	even := len(tokens) - 2 // without the least and the greatest
	if got := float64(inHead); got < math.Floor(expected*float64(even))-1 || got > math.Ceil(expected*float64(even))+2 {
		d.t.Errorf("%s, top-p %g: %d of %d tokens are in the head, whose share is %g", d.name, topP, inHead,
			len(tokens), expected)
	}
	// Of equal tokens the first are the nucleus, and the greatest uniform number selects its last.
	if last := tokens[1]; d.probs[d.order[0]] == d.probs[d.order[len(d.order)-1]] && topP < 1 &&
		(last < size-4 || last > size+2) {
		d.t.Errorf("%s, top-p %g: the last token is %d, want %d", d.name, topP, last, size-1)
	}
}

// reach returns how many tokens reach a mass.
func (d *distribution) reach(mass float64) int {
	i, _ := slices.BinarySearch(d.mass, mass)
	return min(i, len(d.order))
}

func encode(t *testing.T, values any) string {
	t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, values)
	check.Err(t, err)
	return base64.StdEncoding.EncodeToString(b)
}

func decode[T int32 | float32](t *testing.T, text string) []T {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	check.Err(t, err)
	values := make([]T, len(b)/4)
	_, err = binary.Decode(b, binary.LittleEndian, values)
	check.Err(t, err)
	return values
}
