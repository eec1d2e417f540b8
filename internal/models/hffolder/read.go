package hffolder

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/models/safetensors"
	"llmparity/internal/record"
)

// GGUF is a folder as the GGUF that it becomes.
type GGUF struct {
	File     *gguf.File // its description; the data is not there yet
	Same     record.Sameness
	dir      string
	held     map[string]safetensors.Tensor
	metadata []gguf.Entry
	tensors  []gguf.Weights
}

// AsGGUF describes a folder as a GGUF of the same weights, under a name. It reads no weights.
func AsGGUF(dir, name string) (*GGUF, error) {
	g := &GGUF{dir: dir, Same: record.SameBits}
	if err := g.describe(name); err != nil {
		if _, known := errors.AsType[*fault.Error](err); known {
			return nil, err
		}
		return nil, fault.Wrap(fault.UnknownArch, err, "choose another model, or get its GGUF",
			"folder %s cannot become a GGUF", filepath.Base(filepath.Clean(dir)))
	}
	return g, nil
}

// Tensors returns the weights of the GGUF, which are read from the folder.
func (g *GGUF) Tensors() []gguf.Weights { return g.tensors }

// Intact returns an error if the folder's files no longer have the tensors that were described.
func (g *GGUF) Intact(context.Context) error {
	now, err := safetensors.Read(g.dir)
	if err == nil && !reflect.DeepEqual(now, g.held) {
		err = fault.New(fault.BadModel, "leave it unchanged during a run, and try again", "%s was changed", g.dir)
	}
	return err
}

// Write writes the GGUF to path, which appears when it is complete.
func (g *GGUF) Write(ctx context.Context, path string) error {
	return whole.Write(path, func(out io.Writer) error {
		return gguf.Write(whole.Until(ctx, out), g.metadata, g.tensors)
	})
}

// Tokenizer reads the tokenizer of a folder.
func Tokenizer(dir string) (v gguf.Vocabulary, err error) {
	c, err := readConfig(dir)
	if err == nil {
		_, v, err = tokenizer(dir, c)
	}
	return v, err
}

func (g *GGUF) describe(name string) (err error) {
	c, err := readConfig(g.dir)
	if err != nil {
		return err
	}
	if g.held, err = safetensors.Read(g.dir); err != nil {
		return err
	}
	_, biased := g.held["model.layers.0.self_attn.q_proj.bias"]
	a, err := c.architecture(biased)
	if err != nil {
		return err
	}
	entries, v, err := tokenizer(g.dir, c)
	if err != nil {
		return err
	}
	if err := g.weights(a); err != nil {
		return err
	}
	if strings.Contains(strings.ToLower(name), "phi3") != v.Phi3 && a.Name != gguf.Phi3 {
		name = "model" // llama.cpp decides by the name whether tokens swallow the white space after them
	}
	g.metadata = slices.Concat([]gguf.Entry{{Key: "general.architecture", Value: a.Name},
		{Key: "general.type", Value: "model"}, {Key: "general.name", Value: name}}, a.Metadata(), entries)
	if g.File, err = gguf.Sketch(g.dir, g.metadata, g.tensors); err != nil {
		return err
	}
	got, err := g.File.Architecture()
	if err == nil && !reflect.DeepEqual(got, a) {
		err = fmt.Errorf("a GGUF cannot express its configuration: %+v would be %+v", a, got)
	}
	if err == nil {
		_, err = g.File.Vocabulary()
	}
	return err
}

// weights lists the tensors, and checks that the folder has exactly the model's.
func (g *GGUF) weights(a gguf.Architecture) error {
	left := maps.Clone(g.held)
	for name := range left {
		// What transformers computes by itself, and the head that is the embedding.
		if strings.HasSuffix(name, "rotary_emb.inv_freq") || a.Tied && name == "lm_head.weight" {
			delete(left, name)
		}
	}
	for _, w := range weights(a) {
		t, ok := left[w.name]
		delete(left, w.name)
		kind, known := gguf.TypeNamed(t.DType)
		switch {
		case !ok:
			return fmt.Errorf("weight %s is missing", w.name)
		case !slices.Equal(t.Shape, w.shape()):
			return fmt.Errorf("weight %s has the shape %v, want %v", w.name, t.Shape, w.shape())
		case !known || kind != gguf.F32 && kind != gguf.F16 && kind != gguf.BF16:
			return fmt.Errorf("weight %s is %s; supported: F32, F16, BF16", w.name, t.DType)
		}
		one := gguf.Weights{Name: w.tensor, Shape: []uint64{uint64(w.rows)}, Type: kind}
		if w.columns > 0 {
			one.Shape = []uint64{uint64(w.columns), uint64(w.rows)}
		} else if one.Type = gguf.F32; kind != gguf.F32 || w.norm { // engines of ggml want vectors so
			g.Same = record.SameValues
		}
		one.Blocks = func(write func([]byte) error) error { return w.copy(t, kind, write) }
		g.tensors = append(g.tensors, one)
	}
	if len(left) > 0 {
		return fmt.Errorf("weight %s does not belong to a plain %s model", slices.Sorted(maps.Keys(left))[0], a.Name)
	}
	g.tensors = append(g.tensors, a.Divisors()...)
	return nil
}

// copy writes a tensor as a GGUF has it.
func (w weight) copy(t safetensors.Tensor, kind gguf.Type, write func([]byte) error) error {
	f, err := os.Open(t.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	width := t.Bytes / w.rows
	group := int64(max(w.headDim, 1))
	step := max(pieceBytes/(width*group), 1) * group
	for done := int64(0); done < w.rows; done += step {
		b := make([]byte, min(step, w.rows-done)*width)
		if _, err := f.ReadAt(b, t.At+done*width); err != nil {
			return fault.Wrap(fault.BadModel, err, "download it again", "%s: cannot read tensor %s", t.Path, t.Name)
		}
		size := int(width)
		if w.columns == 0 && (kind != gguf.F32 || w.norm) {
			values := make([]float32, len(b)/int(width))
			if err := gguf.Dequantise(kind, b, values); err != nil {
				return err
			}
			b, size = b[:0], 4
			for _, v := range values {
				if w.norm {
					v++
				}
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		if err := write(pairs(b, size, w.headDim)); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoTokenizer says that a folder has no tokenizer.
var ErrNoTokenizer = errors.New("it has no tokenizer.json")

// tokenizer reads the tokenizer as a GGUF has it.
func tokenizer(dir string, c config) (entries []gguf.Entry, v gguf.Vocabulary, err error) {
	if _, err := os.Stat(filepath.Join(dir, vocab.Name)); errors.Is(err, fs.ErrNotExist) {
		return nil, v, ErrNoTokenizer
	}
	limits := vocab.Limits{BOS: numbers(c.BOS), EOS: numbers(c.EOS)}
	var generation struct {
		EOS any `json:"eos_token_id"`
	}
	if regular.JSON(filepath.Join(dir, "generation_config.json"), maxConfig, &generation) == nil &&
		generation.EOS != nil {
		limits.EOS = numbers(generation.EOS)
	}
	if limits.Prefix, err = begins(dir); err != nil {
		return nil, v, err
	}
	if len(limits.Prefix) > 0 {
		limits.BOS = limits.Prefix[:1]
	}
	if entries, v, err = vocab.Read(dir, c.Vocab, limits); err != nil {
		return nil, v, fmt.Errorf("%s: %w", vocab.Name, err)
	}
	template, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	if err == nil && v.ChatTemplate == "" && !slices.ContainsFunc(entries, func(e gguf.Entry) bool {
		return e.Key == "tokenizer.chat_template"
	}) {
		entries = append(entries, gguf.Entry{Key: "tokenizer.chat_template", Value: string(template)})
	}
	return entries, v, nil
}

// numbers returns a number, or those of a list.
func numbers(v any) (out []int) {
	switch v := v.(type) {
	case float64:
		return []int{int(v)}
	case []any:
		for _, one := range v {
			out = append(out, numbers(one)...)
		}
	}
	return out
}

// begins returns the tokens that tokenizer.json puts before a text.
func begins(dir string) (ids []int, err error) {
	type piece struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
		Text json.RawMessage `json:"Sequence"`
	}
	type step struct {
		Type    string  `json:"type"`
		Single  []piece `json:"single"`
		Special map[string]struct {
			IDs []int `json:"ids"`
		} `json:"special_tokens"`
	}
	var file struct {
		Post *struct {
			step
			Steps []step `json:"processors"`
		} `json:"post_processor"`
	}
	if err := regular.JSON(filepath.Join(dir, vocab.Name), 256<<20, &file); err != nil || file.Post == nil {
		return nil, err
	}
	for _, s := range append(file.Post.Steps, file.Post.step) {
		if s.Type != "TemplateProcessing" {
			continue
		}
		text := false
		for _, p := range s.Single {
			switch {
			case p.Special == nil:
				text = true
			case text:
				return nil, fmt.Errorf("its texts end with %s, which is not supported", p.Special.ID)
			default:
				ids = append(ids, s.Special[p.Special.ID].IDs...)
			}
		}
	}
	return ids, nil
}
