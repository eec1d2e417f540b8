package hffolder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/models/safetensors"
	"llmparity/internal/record"
)

// Version is part of the names of cached folders. Raise it when Write changes its output.
const Version = 2

// pieceBytes is roughly how much of a tensor is in memory at a time.
const pieceBytes = 1 << 20

// Write writes the folder of a GGUF, which must not exist. It returns how the weights compare with the file's.
func Write(ctx context.Context, path, dir string) (record.Sameness, error) {
	f, err := gguf.OpenReadable(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	a, err := f.Architecture()
	if err != nil {
		return "", err
	}
	c, err := configOf(a)
	if err != nil {
		return "", fault.Wrap(fault.UnknownArch, err, "use another engine for it",
			"%s cannot become a Hugging Face folder", f.Name)
	}
	v, err := f.Vocabulary()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	same := record.SameBits
	var list []safetensors.Weights
	rounded := false
	for _, w := range weights(a) {
		one, kind := stored(f, w, &rounded)
		if kind != record.SameBits {
			same = kind
		}
		list = append(list, one)
	}
	err = whole.Write(filepath.Join(dir, safetensors.File), func(out io.Writer) error {
		return safetensors.Write(whole.Until(ctx, out), list)
	})
	if err != nil {
		return "", err
	}
	if rounded {
		same = record.OtherValues
	}
	c.ends(v)
	for name, content := range map[string]any{vocab.Name: vocab.Of(v), "tokenizer_config.json": tokenizerConfig(v, a),
		"generation_config.json": map[string]any{"bos_token_id": c.BOS, "eos_token_id": c.EOS}, "config.json": c} {
		if err := whole.JSON(filepath.Join(dir, name), content); err != nil {
			return "", err
		}
	}
	return same, nil
}

// stored returns a tensor as a folder has it, and how its values compare with the GGUF's. rounded is set if some are
// rounded when they are written.
func stored(f *gguf.File, w weight, rounded *bool) (safetensors.Weights, record.Sameness) {
	t, _ := f.Tensor(w.tensor)
	t = t.Slice(w.first, w.rows)
	dtype, same := t.Type.String(), record.SameBits
	if !slices.Contains([]gguf.Type{gguf.F32, gguf.F16, gguf.BF16}, t.Type) || w.norm {
		dtype, same = "F32", record.SameValues
	}
	data := func(write func([]byte) error) error {
		var rows gguf.Rows
		group := max(w.headDim, 1) // whole heads
		if err := rows.Reset(f, t, max(pieceBytes/(4*int(t.Shape[0])*group), 1)*group); err != nil {
			return err
		}
		for {
			b, err := piece(&rows, w, same == record.SameBits, rounded)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = write(b)
			}
			if err != nil {
				return err
			}
		}
	}
	return safetensors.Weights{Name: w.name, DType: dtype, Shape: w.shape(), Data: data}, same
}

// piece returns the next rows as a folder has them: as they are, or as float32.
func piece(rows *gguf.Rows, w weight, asIs bool, rounded *bool) ([]byte, error) {
	if asIs {
		b, width, err := rows.NextBlocks()
		if err != nil {
			return nil, err
		}
		if w.columns == 0 && w.headDim > 0 { // a vector is one row
			width = len(b) / int(w.rows)
		}
		return halves(b, width, w.headDim), nil
	}
	values, err := rows.Next()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		if w.norm { // transformers adds one again
			*rounded = *rounded || float32(v-1)+1 != v
			v--
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return halves(b, 4*int(max(w.columns, 1)), w.headDim), nil
}

// configOf returns config.json for an architecture.
func configOf(a gguf.Architecture) (c config, err error) {
	decimal := func(v float64) float64 { // the shortest for a float32
		var short float64
		_, _ = fmt.Sscan(fmt.Sprint(float32(v)), &short)
		return short
	}
	class := a.Traits().Class
	c = config{ModelType: a.Name, Hidden: a.EmbeddingLength, FFN: a.FeedForwardLength, Layers: a.BlockCount,
		Heads: a.HeadCount, KVHeads: a.HeadCountKV, HeadDim: a.HeadDim, Vocab: a.VocabSize, Context: a.ContextLength,
		Epsilon: decimal(a.RMSEpsilon), Activation: "silu", Tied: &a.Tied, DType: "float32", Base: decimal(a.RopeBase)}
	switch {
	case a.Name == gguf.Llama && a.AttentionBias && a.SlidingWindow > 0,
		a.Name != gguf.Llama && a.Name != gguf.Qwen2 && a.AttentionBias:
		return c, fmt.Errorf("no class of transformers is a %s with biases and what else it has", a.Name)
	case a.Name == gguf.Llama && a.AttentionBias: // a llama's class would have one more bias
		c.ModelType, class = "qwen2", "Qwen2"
	case a.Name == gguf.Llama && a.SlidingWindow > 0:
		c.ModelType, class = "mistral", "Mistral"
	case a.Name == gguf.Gemma3:
		c.ModelType = "gemma3_text"
	case a.Name == gguf.Phi3 && (!a.FusedQKV || !a.FusedGate):
		return c, errors.New("its queries, keys and values are separate tensors, unlike transformers'")
	}
	c.Architectures = []string{class + "ForCausalLM"}
	if a.SlidingWindow > 0 {
		c.Window = &a.SlidingWindow
	}
	if a.Traits().GELU {
		c.gemma(a, decimal)
	}
	c.rotate(a, decimal)
	return c, nil
}

// gemma adds what only gemmas have.
func (c *config) gemma(a gguf.Architecture, decimal func(float64) float64) {
	c.Activation, c.Gate, c.QueryScalar = "", "gelu_pytorch_tanh", float64(a.QueryScalar())
	cap := func(v float64) *real {
		if v == 0 {
			return nil
		}
		return new(real(decimal(v)))
	}
	c.AttentionCap, c.OutputCap, c.LocalBase = cap(a.AttentionCap), cap(a.OutputCap), decimal(a.LocalBase)
	if c.Window == nil {
		c.Window = &a.ContextLength // it has no effect
	}
	for i := range a.BlockCount {
		kind := full
		if a.LocalLayers != nil && a.Local(i) {
			kind = local
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
}

// rotate adds the scaling of the rotation. Divisors of single frequencies are LongRoPE's, for every context.
func (c *config) rotate(a gguf.Architecture, decimal func(float64) float64) {
	short := func(values []float64) (out []float64) {
		for _, v := range values {
			out = append(out, decimal(v))
		}
		return out
	}
	if a.RotaryDim > 0 {
		c.Partial = float64(a.RotaryDim) / float64(a.HeadDim)
	}
	factors, one := short(a.RopeFactors), 1.0
	switch {
	case a.Long != nil:
		c.Original = a.Long.Context
		c.Scaling = &scaling{Type: "longrope", Old: "longrope", Short: short(a.Long.Short), Long: short(a.Long.Long),
			Original: a.Long.Context, Magnitude: new(decimal(a.Long.Magnitude))}
	case len(factors) == 0:
	case !slices.ContainsFunc(factors, func(v float64) bool { return v != factors[0] }):
		c.Scaling = &scaling{Type: "linear", Factor: real(factors[0])}
	default:
		c.Scaling = &scaling{Type: "longrope", Short: factors, Long: factors, Factor: 1, Magnitude: &one,
			Original: a.ContextLength}
	}
}

// ends adds the tokens at the ends of texts.
func (c *config) ends(v gguf.Vocabulary) {
	if v.BOS >= 0 {
		c.BOS = v.BOS
	}
	if v.EOS >= 0 {
		c.EOS = v.EOS
	}
	c.Pad = new(0) // some classes have a default that a small vocabulary lacks
}

// tokenizerConfig is tokenizer_config.json: tokenizer.json has the tokenizer.
func tokenizerConfig(v gguf.Vocabulary, a gguf.Architecture) map[string]any {
	c := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": a.ContextLength,
		"clean_up_tokenization_spaces": false}
	for key, id := range map[string]int{"bos_token": v.BOS, "eos_token": v.EOS} {
		if id >= 0 {
			c[key] = v.Tokens[id]
		}
	}
	if v.ChatTemplate != "" {
		c["chat_template"] = v.ChatTemplate
	}
	return c
}
