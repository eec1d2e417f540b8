package hfconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
)

// ConfigName is the file name of a config.
const ConfigName = "config.json"

// Open reads a config.json, or the one in a folder.
func Open(path string) (Model, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ConfigName)
	}
	text, err := readFile(path, maxConfig)
	if err != nil {
		return Model{}, err
	}
	return Parse(path, text)
}

// Parse reads a config.
func Parse(file string, text []byte) (Model, error) {
	fields, err := object(text)
	if err != nil {
		return Model{}, bad(file, "want a Hugging Face config.json", "not a JSON object: %v", err)
	}
	outer := &reader{file: file, fields: fields}
	r, notes := outer.textPart()
	kind := r.text("model_type")
	if r.err != nil {
		return Model{}, r.err
	}
	if kind == "" {
		return Model{}, bad(file, "name the config.json of a language model", "model_type is missing")
	}
	within := len(notes) > 0
	if alias, ok := aliases[kind]; ok {
		kind = alias
		if len(notes) == 0 {
			notes = append(notes, notText)
		}
	}
	rules, ok := families[kind]
	if !ok {
		return Model{}, unknown(file, kind)
	}
	r.family = kind
	if within {
		textDefaults[kind].rule(r, nil)
	}
	d := decoder{Model: Model{File: file, Type: kind, Notes: notes}}
	d.follow(r, rules)
	if r.err != nil {
		return Model{}, r.err
	}
	d.list()
	d.about(outer, r)
	return d.Model, cmp.Or(r.err, outer.err, d.sound())
}

const notText = "multimodal model: only its text part is counted, without encoders of images and sound"

// textPart returns the fields of the language model in a multimodal model.
func (r *reader) textPart() (*reader, []string) {
	for _, name := range []string{"text_config", "llm_config", "language_config"} {
		if _, _, ok := r.get(name); !ok {
			continue
		}
		s := r.sub(name)
		if s.err != nil {
			return s, nil
		}
		for _, inherited := range []string{"tie_word_embeddings", "torch_dtype", "dtype", "quantization_config"} {
			if _, raw, ok := r.get(inherited); ok && !s.says(inherited) {
				s.fields[inherited] = raw
			}
		}
		if outer := r.text("model_type"); !s.says("model_type") && outer != "" {
			s.fields["model_type"], _ = json.Marshal(outer)
		}
		return s, []string{notText}
	}
	return r, nil
}

func unknown(file, kind string) error {
	do := "give its sizes by flags: --model-params, --num-layers, --num-heads, --num-kv-heads, --hidden-size, --head-dim"
	near := nearest.Of(kind, slices.Sorted(maps.Keys(families)), 3)
	return fault.New(fault.UnknownArch, do, "%s: model_type %q is unknown (nearest known: %s)", file, kind,
		strings.Join(near, ", "))
}

// about reads the fields other than sizes.
func (m *Model) about(outer, r *reader) {
	m.Name = cmp.Or(outer.text("_name_or_path"), nameOf(m.File))
	m.DType = strings.TrimPrefix(cmp.Or(r.text("torch_dtype", "dtype"), outer.text("torch_dtype", "dtype")), "torch.")
	m.MaxContext = r.sizeOr(0, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
		"max_sequence_length")
	if n := r.count(0, "num_nextn_predict_layers"); n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf(
			"the %d layers for multi-token prediction (num_nextn_predict_layers) are not counted: engines load them only "+
				"for speculation", n))
	}
	if m.Quantized = r.quantized(); m.Quantized != nil && len(m.Quantized.unreadable) > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("the config lists modules that are not quantised; %d of its entries cannot "+
			"be read, such as %.60q, and are counted as quantised", len(m.Quantized.unreadable), m.Quantized.unreadable[0]))
	}
}

// nameOf names a model by its file, or by its folder.
func nameOf(file string) string {
	if base := filepath.Base(file); base != ConfigName {
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return filepath.Base(filepath.Dir(file))
}

// Exists reports whether a folder has a config.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ConfigName))
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
