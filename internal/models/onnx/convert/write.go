// Package convert writes a GGUF as the folder of an ONNX model that transformers.js reads.
//
// Weights keep the bits of Q4_0, and else become float32 or float16. They lie in files of data beside the model, each
// written once from start to end, so that conversion needs little memory. The graph uses operators of ONNX Runtime's
// own: GroupQueryAttention, MatMulNBits, SimplifiedLayerNormalization and FastGelu.
package convert

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/record"
)

// Version is part of the names of cached folders. Raise it when Write changes its output.
const Version = 1

// Options are the settings of a model.
type Options struct {
	Context int    // tokens
	DType   string // of activations, of the KV cache and of weights that are not kept: f32 or f16
	SHA256  string // expected hash of the GGUF; "": any
}

// Written describes a written folder.
type Written struct {
	File string // of the model, below the folder
	Kept bool   // some matrices keep the bits of Q4_0
	Same record.Sameness
	// Bytes of the weights, with the tables of the rotation.
	Bytes int64
}

// weight is an initializer in a file of data.
type weight struct {
	name   string
	kind   elem
	dims   []int64
	tensor gguf.Tensor
	raw    []byte // without a tensor
	// encode returns values as they are written, and blocks the same of Q4_0's blocks.
	encode func([]float32) ([]byte, error)
	blocks func([]byte) ([]byte, error)
	// columns: the values of each column lie together, in place of those of a row
	columns bool
	file    string
	at      int64
}

func (w *weight) size() int64 {
	n := widths[w.kind]
	for _, d := range w.dims {
		n *= d
	}
	return n
}

// external describes a weight that has its place.
func (w *weight) external() message {
	entry := func(key, value string) message { return message{}.text(1, key).text(2, value) }
	return initializer(w.name, w.kind, w.dims).bytes(13, entry("location", w.file),
		entry("offset", strconv.FormatInt(w.at, 10)), entry("length", strconv.FormatInt(w.size(), 10))).int(14, 1)
}

// Describe returns what Write would write, without the weights' values.
func Describe(f *gguf.File, o Options) (Written, error) {
	_, out, err := graphOf(f, o)
	return out, err
}

func graphOf(f *gguf.File, o Options) (*graph, Written, error) {
	a, err := f.Architecture()
	if err == nil {
		err = f.RequireReadable()
	}
	g := &graph{Architecture: a, file: f, context: o.Context, elem: float32s, named: map[string]bool{}}
	switch {
	case err != nil:
		return nil, Written{}, err
	case a.HeadDim%8 != 0 || a.Rotated()%16 != 0:
		return nil, Written{}, fault.New(fault.UnknownArch, "choose another model",
			"%s: heads have %d values, of which %d are rotated; ONNX Runtime needs multiples of 8 and 16", f.Name, a.HeadDim,
			a.Rotated())
	case o.DType == "f16":
		g.elem = float16s
	}
	if err := g.build(); err != nil {
		return nil, Written{}, fault.Wrap(fault.NotSupported, err, "use --dtype f32", "%s: a table of the rotation",
			f.Name)
	}
	out := Written{Same: record.SameBits}
	for _, w := range g.weights {
		out.Kept, out.Bytes = out.Kept || w.blocks != nil, out.Bytes+w.size()
		switch t := w.tensor.Type; {
		case w.raw != nil || w.blocks != nil:
		case t == gguf.F32 && g.elem == float32s, t == gguf.F16 && g.elem == float16s:
		case g.elem == float16s:
			out.Same = record.OtherValues
		case out.Same == record.SameBits:
			out.Same = record.SameValues
		}
	}
	out.File = "onnx/model" + suffixes[[2]bool{out.Kept, g.elem == float16s}] + ".onnx"
	return g, out, nil
}

// suffixes of files, as transformers.js knows them: whether matrices keep four bits, and whether the rest is float16.
var suffixes = map[[2]bool]string{{false, false}: "", {false, true}: "_fp16", {true, false}: "_q4",
	{true, true}: "_q4f16"}

// maxData is the size of a file of data, which a page holds in one piece. A larger weight has a file of its own.
var maxData = int64(1 << 30)

// Write writes the GGUF at path to a folder, which appears when it is complete.
func Write(ctx context.Context, path, dir string, o Options) (Written, error) {
	f, err := gguf.OpenReadable(path)
	if err != nil {
		return Written{}, err
	}
	defer f.Close()
	g, out, err := graphOf(f, o)
	if err != nil {
		return out, err
	}
	if err := f.RequireHash(ctx, o.SHA256); err != nil {
		return out, err
	}
	aside, err := whole.NewFolder(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return out, fault.WriteError(err, dir, "choose another folder")
	}
	defer aside.Remove()
	if err = g.write(ctx, aside.Path, out.File); err == nil {
		err = errors.Join(os.Chmod(aside.Path, 0o755), whole.Replace(aside.Path, dir))
	}
	if err != nil {
		return out, fault.WriteError(err, dir, "choose another folder")
	}
	return out, nil
}

func (g *graph) write(ctx context.Context, dir, file string) error {
	v, err := g.file.Vocabulary()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	files := g.place(filepath.Base(path))
	for name, content := range map[string]any{"config.json": g.config(v, filepath.Base(path), files),
		vocab.Name: vocab.Of(v), "tokenizer_config.json": map[string]any{"tokenizer_class": "PreTrainedTokenizerFast",
			"clean_up_tokenization_spaces": false, "chat_template": v.ChatTemplate},
		"generation_config.json": ends(v)} {
		b, err := json.MarshalIndent(content, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := os.WriteFile(path, g.encode(), 0o644); err != nil {
		return err
	}
	w := &writer{from: g.file}
	for _, of := range g.weights {
		err := ctx.Err()
		if err == nil {
			err = w.open(filepath.Join(filepath.Dir(path), of.file))
		}
		if err == nil {
			err = w.put(of)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("weight %s: %w", of.name, err), w.close())
		}
	}
	return w.close()
}

// place gives each weight its place, and returns the number of files.
func (g *graph) place(model string) (files int) {
	const align = 64
	var at int64
	for _, w := range g.weights {
		if at = (at + align - 1) / align * align; files == 0 || at > 0 && at+w.size() > maxData {
			at, files = 0, files+1
		}
		if w.file, w.at = model+"_data", at; files > 1 {
			w.file += "_" + strconv.Itoa(files-1)
		}
		at += w.size()
	}
	return files
}

func ends(v gguf.Vocabulary) map[string]any {
	out := map[string]any{}
	for name, id := range map[string]int{"bos_token_id": v.BOS, "eos_token_id": v.EOS} {
		if id >= 0 {
			out[name] = id
		}
	}
	return out
}

// config is the description that transformers.js needs, in Hugging Face's words.
func (g *graph) config(v gguf.Vocabulary, model string, files int) map[string]any {
	kind := g.Name
	if kind == gguf.Gemma3 {
		kind = "gemma3_text"
	}
	c := ends(v)
	for name, value := range map[string]any{"model_type": kind,
		"architectures": []string{g.Traits().Class + "ForCausalLM"},
		"hidden_size":   g.EmbeddingLength, "intermediate_size": g.FeedForwardLength, "num_hidden_layers": g.BlockCount,
		"num_attention_heads": g.HeadCount, "num_key_value_heads": g.HeadCountKV, "head_dim": g.HeadDim,
		"max_position_embeddings": g.context, "rms_norm_eps": g.RMSEpsilon, "rope_theta": g.RopeBase,
		"vocab_size": g.VocabSize, "tie_word_embeddings": g.Tied,
		"transformers.js_config": map[string]any{"use_external_data_format": map[string]int{model: files}}} {
		c[name] = value
	}
	return c
}

// writer writes weights to files of data, in constant memory.
type writer struct {
	from *gguf.File
	to   *os.File
	rows gguf.Rows
}

// open changes to another file.
func (w *writer) open(path string) (err error) {
	if w.to != nil && w.to.Name() == path {
		return nil
	}
	if err := w.close(); err != nil {
		return err
	}
	w.to, err = os.Create(path)
	return err
}

func (w *writer) close() error {
	if w.to == nil {
		return nil
	}
	err := w.to.Close()
	w.to = nil
	return err
}

// pieceBytes is about how much of a weight is in memory at a time.
const pieceBytes = 4 << 20

// put writes a weight to its place.
func (w *writer) put(of *weight) error {
	if of.raw != nil {
		_, err := w.to.WriteAt(of.raw, of.at)
		return err
	}
	cols := int64(of.tensor.Shape[0])
	if err := w.rows.Reset(w.from, of.tensor, int(max(1, pieceBytes/4/cols))); err != nil {
		return err
	}
	for at, rows := of.at, w.rows.Left(); w.rows.Left() > 0; {
		first := rows - w.rows.Left()
		raw, err := w.piece(of)
		switch {
		case err != nil:
		case of.columns:
			err = w.strips(of, raw, first)
		default:
			_, err = w.to.WriteAt(raw, at)
			at += int64(len(raw))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// piece returns the next rows as they are written.
func (w *writer) piece(of *weight) ([]byte, error) {
	if of.blocks != nil {
		blocks, _, err := w.rows.NextBlocks()
		if err != nil {
			return nil, err
		}
		return of.blocks(blocks)
	}
	values, err := w.rows.Next()
	if err != nil {
		return nil, err
	}
	return of.encode(values)
}

// strips writes rows by columns: some values of each column, as many as there are rows.
func (w *writer) strips(of *weight, raw []byte, first int64) error {
	cols, rows, width := int(of.dims[0]), of.dims[1], int(widths[of.kind])
	strip := make([]byte, 0, len(raw)/cols)
	for c := range cols {
		strip = strip[:0]
		for at := c * width; at < len(raw); at += cols * width {
			strip = append(strip, raw[at:at+width]...)
		}
		if _, err := w.to.WriteAt(strip, of.at+(int64(c)*rows+first)*int64(width)); err != nil {
			return err
		}
	}
	return nil
}

const blockBytes = 18 // of Q4_0: the scale, then the numbers of values j and j+16 in byte j

// numbers are those of Q4_0's blocks, two neighbours a byte.
func numbers(blocks []byte) ([]byte, error) {
	out := make([]byte, 0, len(blocks))
	for block := range slices.Chunk(blocks, blockBytes) {
		q := block[2:]
		for j := 0; j < len(q); j += 2 {
			out = append(out, q[j]&15|q[j+1]<<4)
		}
		for j := 0; j < len(q); j += 2 {
			out = append(out, q[j]>>4|q[j+1]&0xf0)
		}
	}
	return out, nil
}

// scales are those of Q4_0's blocks.
func (g *graph) scales(blocks []byte) ([]byte, error) {
	var values []float32
	for block := range slices.Chunk(blocks, blockBytes) {
		values = append(values, gguf.Half(binary.LittleEndian.Uint16(block)))
	}
	return g.encoded(values)
}
