// Package hffolder converts between GGUF files and Hugging Face folders: config.json, safetensors and tokenizer.json.
//
// It knows the architectures of package gguf. Weights keep their bits, except that quantised ones become float32 in a
// folder, and that a folder has one less than a GGUF in the norms of a gemma. A llama's rows of queries and keys lie in
// another order in a GGUF, for an interleaved rotation.
package hffolder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/regular"
	"llmparity/internal/models/gguf"
)

const maxConfig = 16 << 20

// config is config.json. Published ones have more fields; what they lack has the defaults of transformers' classes.
type config struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	Hidden        int      `json:"hidden_size"`
	FFN           int      `json:"intermediate_size"`
	Layers        int      `json:"num_hidden_layers"`
	Heads         int      `json:"num_attention_heads"`
	KVHeads       int      `json:"num_key_value_heads,omitempty"`
	HeadDim       int      `json:"head_dim,omitempty"`
	Vocab         int      `json:"vocab_size"`
	Context       int      `json:"max_position_embeddings"`
	Epsilon       float64  `json:"rms_norm_eps"`
	Activation    string   `json:"hidden_act,omitempty"`
	Gate          string   `json:"hidden_activation,omitempty"` // gemma's
	Tied          *bool    `json:"tie_word_embeddings,omitempty"`
	Bias          bool     `json:"attention_bias,omitempty"`
	MLPBias       bool     `json:"mlp_bias,omitempty"`
	DType         string   `json:"torch_dtype,omitempty"`
	BOS           any      `json:"bos_token_id,omitempty"`
	EOS           any      `json:"eos_token_id,omitempty"`
	Pad           *int     `json:"pad_token_id,omitempty"`

	Base       float64         `json:"rope_theta,omitempty"`
	Scaling    *scaling        `json:"rope_scaling,omitempty"`
	Parameters json.RawMessage `json:"rope_parameters,omitempty"` // transformers 5 has these instead of the two above
	LocalBase  float64         `json:"rope_local_base_freq,omitempty"`
	Partial    float64         `json:"partial_rotary_factor,omitempty"`
	Original   int             `json:"original_max_position_embeddings,omitempty"`

	Window       *int     `json:"sliding_window,omitempty"`
	UseWindow    *bool    `json:"use_sliding_window,omitempty"`
	Pattern      int      `json:"sliding_window_pattern,omitempty"`
	LayerTypes   []string `json:"layer_types,omitempty"`
	AttentionCap *real    `json:"attn_logit_softcapping,omitempty"`
	OutputCap    *real    `json:"final_logit_softcapping,omitempty"`
	QueryScalar  float64  `json:"query_pre_attn_scalar,omitempty"`

	Quantized json.RawMessage `json:"quantization_config,omitempty"`
}

// real is a number that has a point in JSON, because transformers and vLLM refuse integers.
type real float64

// MarshalJSON writes it with a point or an exponent.
func (r real) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(float64(r))
	if err == nil && !strings.ContainsAny(string(text), ".e") {
		text = append(text, ".0"...)
	}
	return text, err
}

// scaling is the scaling of a rotation.
type scaling struct {
	Type      string    `json:"rope_type,omitempty"`
	Old       string    `json:"type,omitempty"`
	Base      float64   `json:"rope_theta,omitempty"`
	Factor    real      `json:"factor,omitempty"`
	Low       real      `json:"low_freq_factor,omitempty"`
	High      real      `json:"high_freq_factor,omitempty"`
	Original  int       `json:"original_max_position_embeddings,omitempty"`
	Long      []float64 `json:"long_factor,omitempty"`
	Short     []float64 `json:"short_factor,omitempty"`
	Magnitude *float64  `json:"attention_factor,omitempty"`
	Partial   float64   `json:"partial_rotary_factor,omitempty"`
}

// The types of layers.
const (
	full  = "full_attention"
	local = "sliding_attention"
)

// modelTypes are the model_types of the architectures.
var modelTypes = map[string]string{"llama": gguf.Llama, "mistral": gguf.Llama, "qwen2": gguf.Qwen2, "qwen3": gguf.Qwen3,
	"gemma2": gguf.Gemma2, "gemma3_text": gguf.Gemma3, "phi3": gguf.Phi3}

// readConfig reads a folder's config.json.
func readConfig(dir string) (c config, err error) {
	c.Epsilon = 1e-6
	if err := regular.JSON(filepath.Join(dir, "config.json"), maxConfig, &c); err != nil {
		return c, fmt.Errorf("config.json: %w", err)
	}
	if len(c.Parameters) == 0 {
		return c, nil
	}
	var by map[string]scaling // by the type of layer
	if json.Unmarshal(c.Parameters, &by) == nil && (by[full].Base > 0 || by[local].Base > 0) {
		whole := by[full]
		c.Base, c.Scaling, c.LocalBase = whole.Base, &whole, by[local].Base
		return c, nil
	}
	var one scaling
	if err := json.Unmarshal(c.Parameters, &one); err != nil {
		return c, fmt.Errorf("config.json: rope_parameters: %w", err)
	}
	c.Base, c.Scaling, c.Partial = cmp.Or(one.Base, c.Base), &one, cmp.Or(one.Partial, c.Partial)
	return c, nil
}

// defaults are what configurations leave out.
func (c *config) defaults(name string) {
	gemma := name == gguf.Gemma2 || name == gguf.Gemma3
	switch {
	case c.HeadDim > 0:
	case gemma:
		c.HeadDim = 256
	case name == gguf.Qwen3:
		c.HeadDim = 128
	case c.Heads > 0:
		c.HeadDim = c.Hidden / c.Heads
	}
	c.KVHeads = cmp.Or(c.KVHeads, c.Heads)
	c.Tied = cmp.Or(c.Tied, &gemma)
	base := 10000.0
	if name == gguf.Gemma3 {
		base = 1e6
	}
	c.Base = cmp.Or(c.Base, base)
}

// architecture returns the model's description as a GGUF has it. biased: the layers have biases of queries.
func (c config) architecture(biased bool) (a gguf.Architecture, err error) {
	name, known := modelTypes[c.ModelType]
	switch {
	case !known:
		return a, fmt.Errorf("its model_type is %q; supported: %s", c.ModelType, types())
	case len(c.Quantized) > 0 && string(c.Quantized) != "null":
		return a, fmt.Errorf("its weights are quantized (quantization_config), which is not supported")
	case c.MLPBias:
		return a, fmt.Errorf("mlp_bias is true, which is not supported")
	}
	c.defaults(name)
	for field, n := range map[string]int{"hidden_size": c.Hidden, "intermediate_size": c.FFN,
		"num_hidden_layers": c.Layers, "num_attention_heads": c.Heads,
		"head_dim": c.HeadDim, "vocab_size": c.Vocab, "max_position_embeddings": c.Context} {
		if n <= 0 || n > 1<<30 {
			return a, fmt.Errorf("config.json: %s is %d", field, n)
		}
	}
	narrow := func(v float64) float64 { return float64(float32(v)) }
	a = gguf.Architecture{Name: name, ContextLength: c.Context, EmbeddingLength: c.Hidden, BlockCount: c.Layers,
		FeedForwardLength: c.FFN, HeadCount: c.Heads, HeadCountKV: c.KVHeads, HeadDim: c.HeadDim, VocabSize: c.Vocab,
		RMSEpsilon: narrow(c.Epsilon), RopeBase: narrow(c.Base), AttentionBias: biased, Tied: *c.Tied,
		FusedQKV: name == gguf.Phi3, FusedGate: name == gguf.Phi3}
	if part := int(c.Partial * float64(c.HeadDim)); part > 0 && part < c.HeadDim {
		a.RotaryDim = part
	}
	if err := c.caps(&a); err != nil {
		return a, err
	}
	if err := c.windows(&a); err != nil {
		return a, err
	}
	return a, c.rotation(&a)
}

// types lists the model_types.
func types() string {
	var all []string
	for t := range modelTypes {
		all = append(all, t)
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// caps reads gemma's soft caps, and checks its divisor of scores and its activation.
func (c config) caps(a *gguf.Architecture) error {
	gemma := a.Traits().GELU
	set := func(to *float64, cap *real) {
		if cap != nil {
			*to = float64(float32(*cap))
		}
	}
	switch a.Name {
	case gguf.Gemma2:
		set(&a.AttentionCap, c.AttentionCap)
		set(&a.OutputCap, c.OutputCap)
	case gguf.Gemma3:
		set(&a.OutputCap, c.OutputCap)
	}
	if scalar := cmp.Or(c.QueryScalar, 256); gemma && scalar != float64(a.QueryScalar()) {
		return fmt.Errorf("query_pre_attn_scalar is %v, but a GGUF with %d layers has %d", scalar, a.BlockCount,
			a.QueryScalar())
	}
	act, want := cmp.Or(c.Activation, "silu"), "silu"
	if gemma {
		act, want = cmp.Or(c.Gate, c.Activation, "gelu_pytorch_tanh"), "gelu_pytorch_tanh"
	}
	if act != want {
		return fmt.Errorf("its activation is %s; a %s has %s", act, a.Name, want)
	}
	return nil
}

// windows reads the sliding window and the layers that have it.
func (c config) windows(a *gguf.Architecture) error {
	if a.Traits().GELU {
		c.gemmaWindows(a)
		return nil
	}
	if c.Window == nil || *c.Window <= 0 || *c.Window >= c.Context || c.UseWindow != nil && !*c.UseWindow {
		return nil
	}
	switch {
	case a.Name == gguf.Phi3 || c.ModelType == "mistral":
		a.SlidingWindow = *c.Window
	case c.UseWindow != nil && c.LayerTypes == nil || slices.Contains(c.LayerTypes, local):
		return fmt.Errorf("it has a sliding window of %d tokens, which is not supported in a %s", *c.Window, a.Name)
	}
	return nil
}

// gemmaWindows reads which layers have the window, and a rotation of their own.
func (c config) gemmaWindows(a *gguf.Architecture) {
	window, period := 4096, cmp.Or(c.Pattern, map[string]int{gguf.Gemma2: 2, gguf.Gemma3: 6}[a.Name])
	if c.Window != nil {
		window = *c.Window
	}
	a.LocalLayers = []int{}
	for i := range a.BlockCount {
		is := (i+1)%period != 0
		if i < len(c.LayerTypes) {
			is = c.LayerTypes[i] == local
		}
		if is {
			a.LocalLayers = append(a.LocalLayers, i)
		}
	}
	if len(a.LocalLayers) > 0 && window < c.Context {
		a.SlidingWindow = window
	}
	switch {
	case a.Name == gguf.Gemma3 && len(a.LocalLayers) == 0:
		a.LocalLayers = nil
	case a.Name == gguf.Gemma3:
		a.LocalBase = float64(float32(cmp.Or(c.LocalBase, 10000)))
	}
}

// rotation reads the scaling of the rotation.
func (c config) rotation(a *gguf.Architecture) error {
	s := c.Scaling
	if s == nil {
		return nil
	}
	n, kind := a.Rotated()/2, cmp.Or(s.Type, s.Old, "default")
	narrowed := func(values []float64) (out []float64) {
		for _, v := range values {
			out = append(out, float64(float32(v)))
		}
		return out
	}
	switch {
	case kind == "default":
	case kind == "linear" && s.Factor > 0:
		a.RopeFactors = slices.Repeat([]float64{float64(float32(s.Factor))}, n)
	case kind == "llama3" && s.High > s.Low && s.Low > 0 && s.Factor > 0 && s.Original > 0:
		a.RopeFactors = narrowed(s.llama3(*a))
	case (kind == "longrope" || kind == "su") && len(s.Long) == n && len(s.Short) == n:
		return c.long(a, narrowed(s.Short), narrowed(s.Long))
	default:
		return fmt.Errorf("rope_scaling of type %q with these fields is not supported", kind)
	}
	if !slices.ContainsFunc(a.RopeFactors, func(v float64) bool { return v != 1 }) {
		a.RopeFactors = nil
	}
	return nil
}

// llama3 returns Llama 3's divisors: the factor for low frequencies, 1 for high ones, smooth between.
func (s scaling) llama3(a gguf.Architecture) (out []float64) {
	for i := range a.HeadDim / 2 {
		wave := 2 * math.Pi * math.Pow(a.RopeBase, 2*float64(i)/float64(a.HeadDim))
		smooth := min(1, max(0, (float64(s.Original)/wave-float64(s.Low))/float64(s.High-s.Low)))
		out = append(out, 1/((1-smooth)/float64(s.Factor)+smooth))
	}
	return out
}

// long reads LongRoPE's divisors. Those of other architectures than phi3 are the same for every context.
func (c config) long(a *gguf.Architecture, short, long []float64) error {
	s, original := c.Scaling, cmp.Or(c.Original, c.Scaling.Original)
	magnitude := 1.0
	switch {
	case s.Magnitude != nil:
		magnitude = *s.Magnitude
	case original > 1 && c.Context > original:
		magnitude = math.Sqrt(1 + math.Log(float64(c.Context)/float64(original))/math.Log(float64(original)))
	}
	if a.Name == gguf.Phi3 && original > 1 {
		a.Long = &gguf.LongRope{Context: original, Short: short, Long: long, Magnitude: float64(float32(magnitude))}
		return nil
	}
	if !slices.Equal(short, long) || magnitude != 1 {
		return fmt.Errorf("rope_scaling of type longrope is not supported in a %s", a.Name)
	}
	a.RopeFactors = short
	return nil
}
