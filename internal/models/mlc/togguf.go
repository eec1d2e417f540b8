package mlc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/kit/regular"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/record"
)

// GGUF is a package as the GGUF that it becomes.
type GGUF struct {
	File     *gguf.File // its description; the data is not there yet
	Same     record.Sameness
	dir      string
	shards   []Shard
	metadata []gguf.Entry
	tensors  []gguf.Weights
}

// Convertible are the quantizations of MLC's whose packages can become a GGUF, and back.
var Convertible = []string{"q0f16", "q0f32", "q4f16_1", "q4f32_1"}

// AsGGUF describes a package as a GGUF of the same weights, under a name. It reads no weights: a scale that does not
// fit is found when the file is written.
func AsGGUF(dir, name string) (*GGUF, error) {
	p, err := OpenPackage(dir)
	if err != nil {
		return nil, err
	}
	g := &GGUF{dir: dir, shards: p.Shards}
	if err := g.describe(p, name); err != nil {
		return nil, unfit(dir, err)
	}
	return g, nil
}

// Tensors returns the weights of the GGUF, which are read from the package.
func (g *GGUF) Tensors() []gguf.Weights { return g.tensors }

// Write writes the GGUF to path, which appears when it is complete. A damaged package is refused. Its shards are hashed
// first, because tensors are not read in the order of the shards.
func (g *GGUF) Write(ctx context.Context, path string) error {
	if err := g.Intact(ctx); err != nil {
		return err
	}
	return whole.Write(path, func(out io.Writer) error {
		return gguf.Write(whole.Until(ctx, out), g.metadata, g.tensors)
	})
}

func (g *GGUF) describe(p Existing, name string) error {
	if !slices.Contains(Convertible, p.Quantization) && len(p.Shape.WeightTypes) == 0 {
		return fmt.Errorf("its quantization is %s; supported: %s", p.Quantization, strings.Join(Convertible, ", "))
	}
	var own ownConfig
	if err := regular.JSON(filepath.Join(p.Dir, configName), maxConfig, &own); err != nil {
		return err
	}
	p.Shape.ModelType = strings.TrimSuffix(p.Shape.ModelType, "_text")
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

// titled returns a model's name. llama.cpp decides by the name whether tokens swallow the white space after them.
func titled(name string, trims bool) string {
	switch is := phi3.MatchString(name); {
	case trims && !is:
		return name + " (phi-3)"
	case is && !trims:
		return phi3.ReplaceAllString(name, "$1 $2")
	}
	return name
}

var phi3 = regexp.MustCompile(`(?i)(phi)-?(3)`)

// ownConfig is what a GGUF needs of mlc-chat-config.json beside what Existing has.
type ownConfig struct {
	vocab.Limits
	ModelConfig rotation `json:"model_config"`
}

// rotation is what MLC's configurations say of a rotation, and of layers with another.
type rotation struct {
	Scaling   scaled  `json:"rope_scaling"`
	Max       float64 `json:"max_position_embeddings"`
	Original  float64 `json:"original_max_position_embeddings"`
	Partial   float64 `json:"partial_rotary_factor"`
	LocalBase float64 `json:"rope_local_base_freq"`
	Pattern   int     `json:"sliding_window_pattern"`
}

// UnmarshalJSON also reads nested configurations.
func (r *rotation) UnmarshalJSON(text []byte) error {
	type plain rotation
	return decodeModel(text, (*plain)(r))
}

// scaled is the scaling of a rotation in MLC's configurations.
type scaled struct {
	Type     string    `json:"rope_type"`
	Old      string    `json:"type"`
	Factor   float64   `json:"factor"`
	Low      float64   `json:"low_freq_factor"`
	High     float64   `json:"high_freq_factor"`
	Original float64   `json:"original_max_position_embeddings"`
	Long     []float64 `json:"long_factor"`
	Short    []float64 `json:"short_factor"`
}

// UnmarshalJSON takes a number, which Gemma's configurations have, for no scaling.
func (s *scaled) UnmarshalJSON(text []byte) error {
	type plain scaled
	if json.Unmarshal(text, new(float64)) == nil {
		return nil
	}
	return json.Unmarshal(text, (*plain)(s))
}

// rotate adds the rotation to a description.
func (r rotation) rotate(a *gguf.Architecture) (err error) {
	switch a.Name {
	case gguf.Phi3:
		if part := int(r.Partial * float64(a.HeadDim)); part < a.HeadDim {
			a.RotaryDim = part
		}
		if r.Scaling.Old != "" || r.Scaling.Type != "" {
			a.Long, err = r.long(*a)
		}
		return err
	case gguf.Gemma3:
		if a.SlidingWindow > 0 {
			a.LocalBase, a.LocalLayers = cmp.Or(r.LocalBase, 10000), []int{}
		}
		for i := range a.BlockCount {
			if a.SlidingWindow > 0 && (i+1)%cmp.Or(r.Pattern, 6) != 0 {
				a.LocalLayers = append(a.LocalLayers, i)
			}
		}
	}
	a.RopeFactors, err = r.Scaling.factors(*a)
	return err
}

// long returns LongRoPE's divisors.
func (r rotation) long(a gguf.Architecture) (*gguf.LongRope, error) {
	s, original := r.Scaling, cmp.Or(r.Original, r.Scaling.Original)
	if kind := cmp.Or(s.Old, s.Type); kind != "longrope" && kind != "su" {
		return nil, fmt.Errorf("rope_scaling of type %q is not supported in a %s", kind, a.Name)
	}
	if n := a.Rotated() / 2; len(s.Long) != n || len(s.Short) != n {
		return nil, fmt.Errorf("rope_scaling has %d long and %d short factors, want %d", len(s.Long), len(s.Short), n)
	}
	if original < 2 || r.Max <= 0 {
		return nil, fmt.Errorf("max_position_embeddings is %v, and before scaling %v", r.Max, original)
	}
	l := &gguf.LongRope{Context: int(original), Magnitude: 1, Short: narrowed(s.Short), Long: narrowed(s.Long)}
	if r.Max > original {
		l.Magnitude = float64(float32(math.Sqrt(1 + math.Log(r.Max/original)/math.Log(original))))
	}
	return l, nil
}

// narrowed returns the float32 of values.
func narrowed(values []float64) (out []float64) {
	for _, v := range values {
		out = append(out, float64(float32(v)))
	}
	return out
}

// factors returns the divisors of linear scaling or of Llama 3's: the factor for low frequencies, 1 for high ones,
// smooth between.
func (s scaled) factors(a gguf.Architecture) (out []float64, err error) {
	switch {
	case reflect.ValueOf(s).IsZero() || s.Type == "" && a.Name == gguf.Llama: // which MLC ignores
		return nil, nil
	case s.Type == "linear" && a.Name == gguf.Gemma3 && s.Factor > 0:
		return slices.Repeat([]float64{float64(float32(s.Factor))}, a.Rotated()/2), nil
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
	has := func(part string) bool {
		return slices.ContainsFunc(p.Weights, func(w Tensor) bool { return strings.Contains(w.Name, part) })
	}
	if a.RotaryDim == a.HeadDim {
		a.RotaryDim = 0
	}
	a.Tied, a.AttentionBias = !has(namesOf(a.Name).head+"."), has(".bias")
	if a.RopeFactors = narrowed(s.RopeFactors); !p.Whole {
		err = own.ModelConfig.rotate(&a)
	}
	if p.Whole && a.Name == gguf.Phi3 && (len(a.RopeFactors) > 0 || s.RopeAttentionFactor > 0) {
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
	g.Same = record.SameBits
	for _, want := range params(a) {
		for _, group := range want.groups(p.Shape.WeightTypes[want.stem()]) {
			m, err := all.matrixOf(want, group)
			if err != nil {
				return err
			}
			if m.vector && m.plain.dtype == Float16 {
				g.Same = record.SameValues // widened
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
	got.PrefillChunkSize, got.DType, got.KVDType = s.PrefillChunkSize, s.DType, s.KVDType
	got.WeightTypes, got.Quantization = s.WeightTypes, s.Quantization
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
