package mlc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
	"llmparity/internal/regular"
)

// Existing is a WebLLM package as it was found: one written here, or one of MLC's.
type Existing struct {
	Dir               string
	ModelType         string
	Quantization      string
	ContextWindowSize int
	// WebLLM's rotating one, which takes the context's place; -1: none. A model's own is in its Shape
	SlidingWindowSize int
	PrefillChunkSize  int
	Layers            int // 0 where the package doesn't say, as with the others
	Heads             int
	KVHeads           int
	HeadDim           int
	Hidden            int
	Vocab             int
	ChatTemplate      string // the name of its conv_template
	TokenizerFiles    []string
	Weights           []Weight
	Shards            int
	Bytes             int64  // of all shards
	Library           string // the model library in the folder; empty: none, or several
	Libraries         []string
	Shape             modellib.Shape // what it says of its model; zeros, unless it is Whole, where it says nothing
	Whole             bool           // it was written here, and its Shape says all
	Scaled            bool           // it has a scaling of the rotation that Shape doesn't have
	List              string         // the file that lists the shards
}

// Weight is a stored one.
type Weight struct {
	Param
	Bytes int64
}

const (
	maxConfig = 16 << 20
	maxCache  = 256 << 20
)

// OpenPackage reads what a package says of itself, and holds its files against that; of the weights nothing is read.
func OpenPackage(dir string) (Existing, error) {
	bad := func(err error) error {
		return fault.Wrap(fault.BadModel, err, "", "%s is no sound WebLLM package", dir)
	}
	text, err := regular.Read(filepath.Join(dir, configName), maxConfig)
	if err != nil {
		return Existing{}, bad(fmt.Errorf("%s: %w", configName, err))
	}
	p, err := parseConfig(text)
	if err != nil {
		return Existing{}, bad(fmt.Errorf("%s: %w", configName, err))
	}
	p.Dir = dir
	// Up to WebLLM 0.2.79 it had the other name.
	for _, name := range []string{"tensor-cache.json", "ndarray-cache.json"} {
		if text, err = regular.Read(filepath.Join(dir, name), maxCache); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Existing{}, bad(fmt.Errorf("%s: %w", name, err))
		}
		shards, err := parseCache(text)
		if err != nil {
			return Existing{}, bad(fmt.Errorf("%s: %w", name, err))
		}
		if err := p.add(shards); err != nil {
			return Existing{}, bad(err)
		}
		p.List = name
		return p, nil
	}
	return Existing{}, bad(errors.New("it has no tensor-cache.json"))
}

// add takes over what the shards hold, and looks whether they are there.
func (p *Existing) add(shards []Shard) error {
	for _, s := range shards {
		info, err := os.Stat(filepath.Join(p.Dir, s.File))
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular() || info.Size() != s.Bytes:
			return fmt.Errorf("%s has %d bytes, not the %d that are said", s.File, info.Size(), s.Bytes)
		}
		p.hold(s)
	}
	for _, name := range p.TokenizerFiles {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); err != nil && name == "tokenizer.json" {
			return err
		}
	}
	return p.findLibraries()
}

// hold takes over what a shard holds.
func (p *Existing) hold(s Shard) {
	p.Shards++
	p.Bytes += s.Bytes
	for _, r := range s.Tensors {
		p.Weights = append(p.Weights, Weight{Param{r.Name, r.Shape, r.DType}, r.Bytes})
	}
}

// findLibraries takes names as they are, whatever the folder's own name is.
func (p *Existing) findLibraries() error {
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".wasm" {
			p.Libraries = append(p.Libraries, filepath.Join(p.Dir, e.Name()))
		}
	}
	if len(p.Libraries) == 1 {
		p.Library = p.Libraries[0]
	}
	return nil
}

// parseConfig reads mlc-chat-config.json, of which other tools' versions have more and less.
func parseConfig(text []byte) (Existing, error) {
	var c struct {
		ModelType         string      `json:"model_type"`
		Quantization      string      `json:"quantization"`
		VocabSize         int         `json:"vocab_size"`
		ContextWindowSize int         `json:"context_window_size"`
		SlidingWindowSize *int        `json:"sliding_window_size"`
		PrefillChunkSize  int         `json:"prefill_chunk_size"`
		ModelConfig       modelConfig `json:"model_config"`
		TokenizerFiles    []string    `json:"tokenizer_files"`
		ConvTemplate      struct {
			Name string `json:"name"`
		} `json:"conv_template"`
	}
	if err := decodeOne(text, &c); err != nil {
		return Existing{}, err
	}
	m := c.ModelConfig
	p := Existing{ModelType: c.ModelType, Quantization: c.Quantization, ContextWindowSize: c.ContextWindowSize,
		SlidingWindowSize: -1, PrefillChunkSize: c.PrefillChunkSize, Layers: m.Layers, Heads: m.Heads, KVHeads: m.Heads,
		Hidden: m.Hidden, Vocab: c.VocabSize, ChatTemplate: c.ConvTemplate.Name, TokenizerFiles: c.TokenizerFiles}
	p.Shape, p.Whole, p.Scaled = m.shape()
	if c.SlidingWindowSize != nil {
		p.SlidingWindowSize = *c.SlidingWindowSize
	}
	if m.KVHeads != nil {
		p.KVHeads = *m.KVHeads
	}
	switch {
	case m.HeadDim != nil:
		p.HeadDim = *m.HeadDim
	case m.Heads > 0:
		p.HeadDim = m.Hidden / m.Heads
	}
	return p, p.check()
}

// modelConfig is the part of mlc-chat-config.json that is about the model: a Shape where it was written here. MLC's has
// some of that, under other names where it is about the rotation.
type modelConfig struct {
	Type         string          `json:"model_type"` // not in MLC's
	Hidden       int             `json:"hidden_size"`
	Intermediate int             `json:"intermediate_size"`
	Layers       int             `json:"num_hidden_layers"`
	Heads        int             `json:"num_attention_heads"`
	KVHeads      *int            `json:"num_key_value_heads"`
	HeadDim      *int            `json:"head_dim"`
	Window       int             `json:"sliding_window_size"`
	Theta        float64         `json:"rope_theta"`
	Base         float64         `json:"position_embedding_base"`
	Epsilon      float64         `json:"rms_norm_eps"`
	Factors      []float64       `json:"rope_factors"`
	Scaling      json.RawMessage `json:"rope_scaling"`
	Bias         bool            `json:"attention_bias"`
	Tied         bool            `json:"tie_word_embeddings"`
	DType        string          `json:"dtype"`
}

func (m modelConfig) shape() (s modellib.Shape, whole, scaled bool) {
	whole = m.Type != "" && m.DType != "" && m.Theta > 0 && m.Epsilon > 0
	s = modellib.Shape{
		HiddenSize: m.Hidden, IntermediateSize: m.Intermediate, RopeTheta: cmp.Or(m.Theta, m.Base),
		RMSNormEps:  m.Epsilon,
		RopeFactors: m.Factors, AttentionBias: m.Bias, TieWordEmbeddings: m.Tied, SlidingWindowSize: max(m.Window, 0),
	}
	if whole { // MLC's, where it is there, is no name of weights' types
		s.DType = m.DType
	}
	return s, whole, len(m.Scaling) > 0 && string(m.Scaling) != "null"
}

func (p Existing) check() error {
	if p.ModelType == "" || p.Quantization == "" {
		return errors.New("it says no model_type or no quantization")
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"vocab_size", p.Vocab}, {"context_window_size", max(p.ContextWindowSize, 0)},
		{"prefill_chunk_size", max(p.PrefillChunkSize, 0)}, {"hidden_size", p.Hidden},
		{"num_hidden_layers", p.Layers}, {"num_attention_heads", p.Heads}, {"num_key_value_heads", p.KVHeads},
		{"head_dim", p.HeadDim},
	} {
		if f.value < 0 || f.value > 1<<24 {
			return fmt.Errorf("%s is %d", f.name, f.value)
		}
	}
	return nil
}

// parseCache reads the list of the weights, and checks that each lies within its shard and is as large as its shape and
// type are.
func parseCache(text []byte) ([]Shard, error) {
	var c cache
	if err := decodeOne(text, &c); err != nil {
		return nil, err
	}
	if len(c.Records) == 0 {
		return nil, errors.New("it lists no shards")
	}
	for _, s := range c.Records {
		if s.File == "" || s.File != filepath.Base(s.File) || !filepath.IsLocal(s.File) || s.Bytes < 0 {
			return nil, fmt.Errorf("a shard %q of %d bytes", s.File, s.Bytes)
		}
		for _, r := range s.Tensors {
			if err := r.within(s); err != nil {
				return nil, fmt.Errorf("weight %q: %w", r.Name, err)
			}
		}
	}
	return c.Records, nil
}

func (r Tensor) within(s Shard) error {
	size, err := StoredBytes(r.DType, r.Format, r.Shape)
	if err != nil {
		return err
	}
	switch {
	case r.Bytes != size:
		return fmt.Errorf("it has %d bytes, %s %v has %d", r.Bytes, r.DType, r.Shape, size)
	case r.Offset < 0 || r.Offset > s.Bytes-r.Bytes:
		return fmt.Errorf("it lies beyond its shard")
	}
	return nil
}

// numeric is how TVM names types of numbers: float32, uint32, bfloat16, float8_e4m3fn, and, once, e4m3_float8.
var numeric = regexp.MustCompile(`^(?:[a-z0-9]+_)?(?:float|bfloat|int|uint)(\d{1,2})(?:_[a-z0-9]+)?$`)

// widthOf gives the bits of a type, as the list of a package's weights names it.
func widthOf(dtype string) (int, error) {
	if m := numeric.FindStringSubmatch(dtype); m != nil {
		if bits, err := strconv.Atoi(m[1]); err == nil && bits > 0 && bits <= 64 {
			return bits, nil
		}
	}
	return 0, fmt.Errorf("its type %q is not known", dtype)
}

// StoredBytes is how many bytes of a shard a weight takes, by its type, the format in which it is stored, and its
// sizes.
func StoredBytes(dtype, format string, shape []int64) (int64, error) {
	width, err := widthOf(dtype)
	if err != nil {
		return 0, err
	}
	// TVM writes the format on weights of every type, and halves these
	if format == "f32-to-bf16" && dtype == "float32" {
		width /= 2
	}
	bits := int64(width)
	for _, n := range shape {
		switch {
		case n < 0:
			return 0, fmt.Errorf("it has the sizes %v", shape)
		case n > 0 && bits > 1<<50/n:
			return 0, fmt.Errorf("its sizes %v are too large", shape)
		}
		bits *= n
	}
	return (bits + 7) / 8, nil
}

// decodeOne decodes a text that is one JSON value and nothing behind it.
func decodeOne(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}

// ChatTemplate names the way in which a package of this vocabulary lays chats out, and tells whether it is the model's
// own.
func ChatTemplate(v gguf.Vocabulary) (name string, known bool) {
	if v.ChatTemplate == "" {
		return "", false
	}
	c, known := chat(v)
	return c.Name, known
}

// Component is the part of a model that a weight belongs to, by its name in a package or in a GGUF.
func Component(name string) string {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(name, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("norm", ".ln_"):
		return "norms"
	case has("lm_head") || strings.HasPrefix(name, "output."):
		return "head"
	case has("embed", "embd", ".wte.", ".wpe."):
		return "embedding"
	case has("attn", "attention"):
		return "attention"
	case has("mlp", "ffn", "feed_forward", "experts", "intermediate", ".output.dense"):
		return "feed-forward"
	}
	return "other"
}

// pageTokens is how many tokens a page of WebLLM's KV cache holds.
const pageTokens = 16

// KVReserved is what WebLLM reserves for a KV cache, all of it at load: pages for the whole context, and one more.
func KVReserved(bytesPerToken int64, context int) int64 {
	pages := (int64(context)+pageTokens-1)/pageTokens + 1
	return bytesPerToken * pageTokens * pages
}

// KVValues is how many values a token takes in the KV cache of all layers, by the weights: a library of MLC's tells it
// in no other way. It is 0 where the weights' names or shapes are not those that are known.
func KVValues(params []Param) int64 {
	var values int64
	rows := map[string]int64{} // of a layer's queries, keys and values together
	for _, p := range params {
		layer, part, ok := strings.Cut(p.Name, ".self_attn.")
		if !ok || len(p.Shape) != 2 {
			continue
		}
		switch part {
		case "qkv_proj.weight", "c_attn.weight":
			rows[layer] = p.Shape[0]
		case "o_proj.weight":
			if all := rows[layer]; all > p.Shape[1] { // less the queries
				values += all - p.Shape[1]
			}
		}
	}
	return values
}

// Described is a package by its settings and the list of its weights alone; the list may be nil. No file is looked for.
func Described(config, weights []byte) (Existing, error) {
	p, err := parseConfig(config)
	if err != nil || weights == nil {
		return p, err
	}
	shards, err := parseCache(weights)
	for _, s := range shards {
		p.hold(s)
	}
	return p, err
}
