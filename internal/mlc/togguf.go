package mlc

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"llmparity/internal/gguf"
	"llmparity/internal/mlc/vocab"
	"llmparity/internal/regular"
	"llmparity/internal/whole"
)

// GGUF is a package as the GGUF that it becomes.
type GGUF struct {
	File     *gguf.File // its description; the data is not there yet
	Same     Sameness
	dir      string
	metadata []gguf.Entry
	tensors  []gguf.Weights
}

// quantizations are those whose packages can become a GGUF.
var quantizations = []string{"q0f16", "q0f32", "q4f16_1", "q4f32_1"}

// AsGGUF describes a package as a GGUF of the same weights, under a name. It reads no weights: a scale that does not
// fit is found when the file is written.
func AsGGUF(dir, name string) (*GGUF, error) {
	p, err := OpenPackage(dir)
	if err != nil {
		return nil, err
	}
	g := &GGUF{dir: dir}
	if err := g.describe(p, name); err != nil {
		return nil, unfit(dir, err)
	}
	return g, nil
}

// Write writes the GGUF to path, which appears when it is complete.
func (g *GGUF) Write(ctx context.Context, path string) error {
	return whole.Write(path, func(out io.Writer) error {
		return gguf.Write(whole.Until(ctx, out), g.metadata, g.tensors)
	})
}

func (g *GGUF) describe(p Existing, name string) error {
	if !slices.Contains(quantizations, p.Quantization) && len(p.Shape.WeightTypes) == 0 {
		return fmt.Errorf("its quantization is %s; supported: %s", p.Quantization, strings.Join(quantizations, ", "))
	}
	var own ownConfig
	if err := regular.JSON(filepath.Join(p.Dir, configName), maxConfig, &own); err != nil {
		return err
	}
	a, err := p.architecture(own)
	if err != nil {
		return err
	}
	entries, tokens, err := vocab.Read(p.Dir, a.VocabSize, own.Limits)
	if err != nil {
		return fmt.Errorf("%s: %w", vocab.Name, err)
	}
	if err := g.weights(p, a); err != nil {
		return err
	}
	g.metadata = slices.Concat([]gguf.Entry{
		{Key: "general.architecture", Value: a.Name}, {Key: "general.type", Value: "model"},
		{Key: "general.name", Value: titled(name, tokens.Phi3)},
		{Key: "general.quantization_version", Value: uint32(2)},
	}, a.Metadata(), entries)
	if kind, known := fileTypes[p.Quantization]; known {
		g.metadata = append(g.metadata, gguf.Entry{Key: "general.file_type", Value: kind})
	}
	return g.check(p)
}

// fileTypes are llama.cpp's numbers for what most weights are.
var fileTypes = map[string]uint32{"q0f32": 0, "q0f16": 1, "q4f16_1": 2, "q4f32_1": 2, "q4_1": 3, "q8_0": 7,
	"q5_0": 8, "q5_1": 9, "q4_k": 14, "q5_k": 16, "q6_k": 18}

// titled returns a model's name. llama.cpp knows by the name whether tokens take the white space after them.
func titled(name string, trims bool) string {
	if low := strings.ToLower(name); trims && !strings.Contains(low, "phi-3") && !strings.Contains(low, "phi3") {
		return name + " (phi-3)"
	}
	return name
}

// ownConfig is what a GGUF needs of mlc-chat-config.json beside what Existing has.
type ownConfig struct {
	vocab.Limits
	ModelConfig struct {
		Scaling *scaled `json:"rope_scaling"`
	} `json:"model_config"`
}

// scaled is the scaling of a rotation in MLC's configurations.
type scaled struct {
	Type     string  `json:"rope_type"`
	Factor   float64 `json:"factor"`
	Low      float64 `json:"low_freq_factor"`
	High     float64 `json:"high_freq_factor"`
	Original float64 `json:"original_max_position_embeddings"`
}

// factors returns the divisors of Llama 3's scaling: the factor for low frequencies, 1 for high ones, smooth between.
func (s *scaled) factors(a gguf.Architecture) (out []float64, err error) {
	switch {
	case s == nil || s.Type == "" && a.Name == gguf.Llama: // which MLC ignores
		return nil, nil
	case s.Type != "llama3" || a.Name != gguf.Llama || !(s.High > s.Low && s.Low > 0 && s.Factor > 0 && s.Original > 0):
		return nil, fmt.Errorf("rope_scaling of type %q is not supported in a %s", s.Type, a.Name)
	}
	for i := range a.HeadDim / 2 {
		wave := 2 * math.Pi * math.Pow(a.RopeBase, 2*float64(i)/float64(a.HeadDim))
		smooth := min(1, max(0, (s.Original/wave-s.Low)/(s.High-s.Low)))
		out = append(out, float64(float32(1/((1-smooth)/s.Factor+smooth))))
	}
	return out, nil
}

// architecture returns the model's description.
func (p Existing) architecture(own ownConfig) (a gguf.Architecture, err error) {
	s := p.Shape
	narrow := func(v float64) float64 { return float64(float32(v)) }
	a = gguf.Architecture{Name: s.ModelType, ContextLength: p.Longest(), EmbeddingLength: s.HiddenSize,
		BlockCount: s.NumHiddenLayers, FeedForwardLength: s.IntermediateSize, HeadCount: s.NumAttentionHeads,
		HeadCountKV: s.NumKeyValueHeads, HeadDim: s.HeadDim, VocabSize: s.VocabSize, RMSEpsilon: narrow(s.RMSNormEps),
		RopeBase: narrow(cmp.Or(s.RopeTheta, 10000)), RotaryDim: s.RotaryDim, SlidingWindow: s.SlidingWindowSize,
		LocalLayers: s.LocalLayers, LocalBase: narrow(s.RopeLocalTheta), AttentionCap: narrow(s.AttnLogitSoftcapping),
		OutputCap: narrow(s.FinalLogitSoftcapping), FusedQKV: s.ModelType == gguf.Phi3,
		FusedGate: s.ModelType == gguf.Phi3}
	if !slices.Contains(gguf.Supported(), a.Name) {
		return a, fmt.Errorf("its architecture is %s; supported: %s", a.Name, strings.Join(gguf.Supported(), ", "))
	}
	for name, n := range map[string]int{"context_window_size": a.ContextLength, "hidden_size": a.EmbeddingLength,
		"num_hidden_layers": a.BlockCount, "intermediate_size": a.FeedForwardLength, "num_attention_heads": a.HeadCount,
		"head_dim": a.HeadDim, "vocab_size": a.VocabSize} {
		if n <= 0 {
			return a, fmt.Errorf("%s lacks %s", configName, name)
		}
	}
	if a.RotaryDim == a.HeadDim {
		a.RotaryDim = 0
	}
	has := func(part string) bool {
		return slices.ContainsFunc(p.Weights, func(w Weight) bool { return strings.Contains(w.Name, part) })
	}
	a.Tied, a.AttentionBias = !has(namesOf(a.Name).head+"."), has(".bias")
	for _, v := range s.RopeFactors {
		a.RopeFactors = append(a.RopeFactors, narrow(v))
	}
	if !p.Whole {
		a.RopeFactors, err = own.ModelConfig.Scaling.factors(a)
	}
	if a.Name == gguf.Phi3 && (len(a.RopeFactors) > 0 || s.RopeAttentionFactor > 0) {
		factors := a.RopeFactors
		if len(factors) == 0 {
			factors = slices.Repeat([]float64{1}, a.Rotated()/2)
		}
		// The package has those of its context only.
		a.RopeFactors = nil
		a.Long = &gguf.LongRope{Context: a.ContextLength, Short: factors, Long: factors,
			Magnitude: cmp.Or(narrow(s.RopeAttentionFactor), 1)}
	}
	return a, err
}

// weights lists the tensors, and checks that the package has exactly the model's weights.
func (g *GGUF) weights(p Existing, a gguf.Architecture) error {
	all, pieces := p.located(), map[string][]piece{}
	for _, want := range params(a) {
		for _, group := range want.groups(p.Shape.WeightTypes[want.stem()]) {
			m, err := all.matrixOf(want, group)
			if err != nil {
				return err
			}
			if m.vector && m.plain.dtype == Float16 {
				g.Same = SameValues // widened
			}
			at := int64(0)
			for _, of := range group.parts {
				pieces[of.tensor] = append(pieces[of.tensor], piece{m, of, at})
				at += of.rows
			}
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("weight %s does not belong to a plain %s model", slices.Sorted(maps.Keys(all))[0], a.Name)
	}
	for _, w := range a.Tensors() {
		from := pieces[w.Name]
		slices.SortFunc(from, func(x, y piece) int { return cmp.Compare(x.first, y.first) })
		g.tensors = append(g.tensors, gguf.Weights{Name: w.Name, Shape: w.Shape, Type: from[0].kind,
			Blocks: func(write func([]byte) error) error {
				for _, p := range from {
					if err := p.write(g.dir, write); err != nil {
						return err
					}
				}
				return nil
			}})
	}
	g.tensors = append(g.tensors, a.Divisors()...)
	return nil
}

// Tokenizer reads the tokenizer of a package.
func Tokenizer(dir string) (v gguf.Vocabulary, err error) {
	var c struct {
		vocab.Limits
		VocabSize int `json:"vocab_size"`
	}
	if err := regular.JSON(filepath.Join(dir, configName), maxConfig, &c); err != nil {
		return v, err
	}
	if c.VocabSize <= 0 || c.VocabSize > 1<<24 {
		return v, fmt.Errorf("%s: vocab_size is %d", configName, c.VocabSize)
	}
	_, v, err = vocab.Read(dir, c.VocabSize, c.Limits)
	return v, err
}

// check reads the header as an engine will, and checks that it says what the package says.
func (g *GGUF) check(p Existing) (err error) {
	if g.File, err = gguf.Sketch(g.dir, g.metadata, g.tensors); err != nil {
		return err
	}
	if _, err := g.File.Vocabulary(); err != nil {
		return err
	}
	s := p.Shape
	s.ContextWindowSize = p.Longest()
	if s.QueryPreAttnScalar == float64(s.HeadDim) { // which is the default
		s.QueryPreAttnScalar = 0
	}
	got, err := Shape(g.File, Options{PrefillChunk: 1})
	if err != nil {
		return err
	}
	got.PrefillChunkSize, got.DType, got.WeightTypes, got.Quantization = s.PrefillChunkSize, s.DType, s.WeightTypes,
		s.Quantization
	of, is := reflect.ValueOf(s), reflect.ValueOf(got)
	for i := range of.NumField() {
		unknown := !p.Whole && of.Field(i).IsZero()
		if !unknown && !reflect.DeepEqual(of.Field(i).Interface(), is.Field(i).Interface()) {
			name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
			return fmt.Errorf("a GGUF cannot express that %s is %v", name, of.Field(i))
		}
	}
	return nil
}
