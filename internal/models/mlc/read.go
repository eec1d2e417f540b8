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
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modellib"
)

// Existing is a WebLLM package, ours or MLC's.
type Existing struct {
	Dir          string
	Quantization string
	// Shape has zeros for unknown fields, unless Whole.
	Shape  modellib.Shape
	Whole  bool // written by us: Shape is complete
	Scaled bool // the rotation has a scaling that is not in Shape
	// RotatingWindow is WebLLM's sliding window, which replaces the context; -1: none. The model's own is in Shape.
	RotatingWindow int
	ChatTemplate   string // the name of its conv_template
	TokenizerFiles []string
	Shards         []Shard
	Weights        []Tensor
	Bytes          int64  // of all shards
	Library        string // the model library in the folder; "": none or several
	Libraries      []string
	List           string // file name of the list of shards
}

const (
	maxConfig = 16 << 20
	maxCache  = 256 << 20
)

// OpenPackage reads the description of a package and checks that its files match. It reads no weights.
func OpenPackage(dir string) (Existing, error) {
	bad := func(err error) error {
		return fault.Wrap(fault.BadModel, err, "", "%s is not a valid WebLLM package", dir)
	}
	var p Existing
	text, err := regular.Read(filepath.Join(dir, configName), maxConfig)
	if err == nil {
		p, err = parseConfig(text)
	}
	if err != nil {
		return Existing{}, bad(fmt.Errorf("%s: %w", configName, err))
	}
	p.Dir = dir
	// The second name is that of WebLLM up to 0.2.79.
	for _, name := range []string{"tensor-cache.json", "ndarray-cache.json"} {
		if text, err = regular.Read(filepath.Join(dir, name), maxCache); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			p.List = name
			p.Shards, err = ParseShards(text)
		}
		if err != nil {
			return Existing{}, bad(fmt.Errorf("%s: %w", name, err))
		}
		if err := p.look(); err != nil {
			return Existing{}, bad(err)
		}
		return p, nil
	}
	return Existing{}, bad(errors.New("no tensor-cache.json"))
}

// look looks at the package's files, and checks that those of the shards are as they should be.
func (p *Existing) look() error {
	for _, s := range p.Shards {
		info, err := os.Stat(filepath.Join(p.Dir, s.File))
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular() || info.Size() != s.Bytes:
			return fmt.Errorf("%s has %d bytes, want %d", s.File, info.Size(), s.Bytes)
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

// hold adds a shard.
func (p *Existing) hold(s Shard) {
	p.Bytes += s.Bytes
	p.Weights = append(p.Weights, s.Tensors...)
}

// findLibraries lists the model libraries. It does not use Glob, because the folder's name may contain wildcards.
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

// parseConfig reads mlc-chat-config.json. Other tools' versions have other fields.
func parseConfig(text []byte) (Existing, error) {
	var c struct {
		ModelType         string          `json:"model_type"`
		Quantization      string          `json:"quantization"`
		VocabSize         int             `json:"vocab_size"`
		ContextWindowSize int             `json:"context_window_size"`
		SlidingWindowSize int             `json:"sliding_window_size"`
		PrefillChunkSize  int             `json:"prefill_chunk_size"`
		ModelConfig       json.RawMessage `json:"model_config"`
		TokenizerFiles    []string        `json:"tokenizer_files"`
		ConvTemplate      struct {
			Name string `json:"name"`
		} `json:"conv_template"`
	}
	if err := decodeOne(text, &c); err != nil {
		return Existing{}, err
	}
	// Ours is a Shape. MLC's has some of its fields, two of them under other names.
	var s modellib.Shape
	var other struct {
		Base    float64 `json:"position_embedding_base"`
		Scaling any     `json:"rope_scaling"`
	}
	if len(c.ModelConfig) > 0 {
		if err := decodeModel(c.ModelConfig, &s, &other); err != nil {
			return Existing{}, err
		}
	}
	whole := s.ModelType != "" && s.DType != "" && s.RopeTheta > 0 && s.RMSNormEps > 0
	if !whole {
		s.DType = "" // MLC's field means something else
	}
	s.ModelType, s.VocabSize = c.ModelType, c.VocabSize
	s.ContextWindowSize, s.PrefillChunkSize = c.ContextWindowSize, c.PrefillChunkSize
	s.RopeTheta, s.SlidingWindowSize = cmp.Or(s.RopeTheta, other.Base), max(s.SlidingWindowSize, 0)
	s.NumKeyValueHeads = cmp.Or(s.NumKeyValueHeads, s.NumAttentionHeads)
	if s.HeadDim == 0 && s.NumAttentionHeads > 0 {
		s.HeadDim = s.HiddenSize / s.NumAttentionHeads
	}
	p := Existing{Quantization: c.Quantization, Shape: s, Whole: whole, Scaled: other.Scaling != nil,
		RotatingWindow: cmp.Or(c.SlidingWindowSize, -1), ChatTemplate: c.ConvTemplate.Name,
		TokenizerFiles: c.TokenizerFiles}
	return p, p.check()
}

// decodeModel decodes a model_config. Gemma 3's has the settings in a text_config, and those that MLC does not know in
// the kwargs of that.
func decodeModel(text []byte, into ...any) error {
	var outer struct {
		Text json.RawMessage `json:"text_config"`
	}
	err := json.Unmarshal(text, &outer)
	var inner struct {
		Others json.RawMessage `json:"kwargs"`
	}
	if len(outer.Text) > 0 {
		err = errors.Join(err, json.Unmarshal(outer.Text, &inner))
	}
	for _, part := range [][]byte{text, inner.Others, outer.Text} {
		for _, v := range into {
			if len(part) > 0 {
				err = errors.Join(err, json.Unmarshal(part, v))
			}
		}
	}
	return err
}

func (p Existing) check() error {
	s := p.Shape
	if s.ModelType == "" || p.Quantization == "" {
		return errors.New("model_type or quantization is missing")
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"vocab_size", s.VocabSize}, {"context_window_size", max(s.ContextWindowSize, 0)},
		{"prefill_chunk_size", max(s.PrefillChunkSize, 0)}, {"hidden_size", s.HiddenSize},
		{"num_hidden_layers", s.NumHiddenLayers}, {"num_attention_heads", s.NumAttentionHeads},
		{"num_key_value_heads", s.NumKeyValueHeads}, {"head_dim", s.HeadDim},
	} {
		if f.value < 0 || f.value > 1<<24 {
			return fmt.Errorf("%s is %d, want 0 to %d", f.name, f.value, 1<<24)
		}
	}
	return nil
}

// shardName matches what MLC's tools call shards. It excludes paths and the other files of a package.
var shardName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_+-]{0,199}\.bin$`)

var md5Sum = regexp.MustCompile(`^[0-9a-f]{32}$`)

const (
	maxShards = 1 << 16
	maxBytes  = 1 << 42 // of a model: 4 TiB
)

// ParseShards reads a package's list of weights. Each weight must be as large as its type and shape say and lie inside
// its shard, and together the weights must fill the shard.
func ParseShards(text []byte) ([]Shard, error) {
	var c struct {
		Records []Shard `json:"records"`
	}
	if err := decodeOne(text, &c); err != nil {
		return nil, err
	}
	if len(c.Records) == 0 || len(c.Records) > maxShards {
		return nil, fmt.Errorf("it lists %d shards, want 1 to %d", len(c.Records), maxShards)
	}
	seen, total := map[string]bool{}, int64(0)
	for _, s := range c.Records {
		if err := s.check(seen); err != nil {
			return nil, err
		}
		if total += s.Bytes; total > maxBytes {
			return nil, fmt.Errorf("its shards have more than %d bytes together", int64(maxBytes))
		}
	}
	return c.Records, nil
}

// check checks a shard. seen has the names of earlier shards and weights.
func (s Shard) check(seen map[string]bool) error {
	key := strings.ToLower(s.File) // because some file systems ignore case
	switch {
	case !shardName.MatchString(s.File) || seen[key]:
		return fmt.Errorf("shard %q has an invalid name or is listed twice", s.File)
	case s.Bytes <= 0 || s.Bytes > maxBytes:
		return fmt.Errorf("shard %s has %d bytes", s.File, s.Bytes)
	case !md5Sum.MatchString(s.MD5):
		return fmt.Errorf("shard %s has the MD5 %q", s.File, s.MD5)
	}
	seen[key] = true
	sum := int64(0)
	for _, t := range s.Tensors {
		size, err := StoredBytes(t.DType, t.Format, t.Shape)
		switch {
		case err != nil:
			return fmt.Errorf("weight %q: %w", t.Name, err)
		case t.Name == "" || seen[t.Name]:
			return fmt.Errorf("weight %q has no name or is listed twice", t.Name)
		case t.Bytes != size:
			return fmt.Errorf("weight %q has %d bytes, want %d for %s %v", t.Name, t.Bytes, size, t.DType, t.Shape)
		case t.Offset < 0 || t.Offset > s.Bytes-t.Bytes:
			return fmt.Errorf("weight %q reaches beyond shard %s", t.Name, s.File)
		}
		seen[t.Name] = true
		sum += t.Bytes
	}
	if sum != s.Bytes {
		return fmt.Errorf("the weights in %s have %d bytes, the shard has %d", s.File, sum, s.Bytes)
	}
	return nil
}

// numeric matches TVM's names of types: float32, uint32, bfloat16, float8_e4m3fn, e4m3_float8.
var numeric = regexp.MustCompile(`^(?:[a-z0-9]+_)?(?:float|bfloat|int|uint)(\d{1,2})(?:_[a-z0-9]+)?$`)

// widthOf returns the bits of a type.
func widthOf(dtype string) (int, error) {
	if m := numeric.FindStringSubmatch(dtype); m != nil {
		if bits, err := strconv.Atoi(m[1]); err == nil && bits > 0 && bits <= 64 {
			return bits, nil
		}
	}
	return 0, fmt.Errorf("unknown type %q", dtype)
}

// StoredBytes returns the size of a weight in its shard, by type, storage format and shape.
func StoredBytes(dtype, format string, shape []int64) (int64, error) {
	width, err := widthOf(dtype)
	if err != nil {
		return 0, err
	}
	// TVM notes this format for weights of every type, but it halves only float32.
	if format == "f32-to-bf16" && dtype == "float32" {
		width /= 2
	}
	bits := int64(width)
	for _, n := range shape {
		switch {
		case n < 0:
			return 0, fmt.Errorf("invalid shape %v", shape)
		case n > 0 && bits > 1<<50/n:
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		bits *= n
	}
	return (bits + 7) / 8, nil
}

// decodeOne decodes a single JSON value.
func decodeOne(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the JSON value")
	}
	return nil
}

// ChatTemplate returns the conversation template that a package of this vocabulary gets, and whether it is the model's
// own.
func ChatTemplate(v gguf.Vocabulary) (name string, known bool) {
	if v.ChatTemplate == "" {
		return "", false
	}
	c, known := chat(v)
	return c.Name, known
}

// Component returns the part of a model that a weight belongs to, by its name in a package or GGUF.
func Component(name string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
	}
	switch {
	case has("norm", ".ln_", ".ln."):
		return "norms"
	case has("lm_head") || strings.HasPrefix(name, "output."):
		return "head"
	case has("embed", "embd", ".wte.", ".wpe."):
		return "embedding"
	case has("attn", "attention", ".mixer."):
		return "attention"
	case has("mlp", "ffn", "feed_forward", "experts", "intermediate", ".output.dense"):
		return "feed-forward"
	}
	return "other"
}

// pageTokens is the number of tokens in a page of WebLLM's KV cache.
const pageTokens = 16

// KVReserved returns the bytes that WebLLM reserves for the KV cache at load: pages for the whole context, and one
// more.
func KVReserved(bytesPerToken int64, context int) int64 {
	pages := (int64(context)+pageTokens-1)/pageTokens + 1
	return bytesPerToken * pageTokens * pages
}

// Described parses a package's configuration and list of weights, without files. weights may be nil.
func Described(config, weights []byte) (Existing, error) {
	p, err := parseConfig(config)
	if err != nil || weights == nil {
		return p, err
	}
	shards, err := ParseShards(weights)
	for _, s := range shards {
		p.hold(s)
	}
	return p, err
}
