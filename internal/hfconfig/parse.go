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

	"llmparity/internal/fault"
	"llmparity/internal/nearest"
)

// ConfigName is what a config is called.
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

// UnknownType is why a config says nothing: its model_type is none that is known.
type UnknownType struct{ Type string }

func (e UnknownType) Error() string { return fmt.Sprintf("model_type %q is not known", e.Type) }

// IsUnknown tells whether a config is sound and of a kind that isn't known.
func IsUnknown(err error) bool { return errors.As(err, new(UnknownType)) }

// Parse works out what a config says.
func Parse(file string, text []byte) (Model, error) {
	outer, err := newReader(file, text)
	if err != nil {
		return Model{}, err
	}
	r, notes := outer.textPart()
	kind := r.text("model_type")
	if r.err != nil {
		return Model{}, r.err
	}
	if kind == "" {
		return Model{}, bad(file, "a config.json of a language model has one", "model_type is missing")
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
		r.textDefaults(kind)
	}
	var d decoder
	d.follow(r, rules)
	if r.err != nil {
		return Model{}, r.err
	}
	m := d.model(r)
	m.Notes = notes
	m.about(outer, r)
	if r.err == nil {
		r.err = outer.err
	}
	return m, cmp.Or(r.err, m.sound())
}

const notText = "the model sees or hears as well: its text part alone is counted, without what encodes images and sound"

// textPart gives the fields of the language model within a model that sees or hears.
func (r *reader) textPart() (*reader, []string) {
	for _, name := range []string{"text_config", "llm_config", "language_config"} {
		if _, ok := r.get(name); !ok {
			continue
		}
		s := r.sub(name)
		if s.err != nil {
			return s, nil
		}
		// What the text part doesn't say the whole may.
		for _, inherited := range []string{"tie_word_embeddings", "torch_dtype", "dtype", "quantization_config"} {
			if raw, ok := r.get(inherited); ok && !s.says(inherited) {
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
	err := fault.New(fault.UnknownArch, do, "%s: %s (nearest known: %s)", file, UnknownType{kind}.Error(),
		strings.Join(near, ", "))
	err.Err = UnknownType{kind}
	return err
}

// about reads what is beside the sizes.
func (m *Model) about(outer, r *reader) {
	m.Name = outer.text("_name_or_path")
	if base := filepath.Base(m.File); m.Name == "" && base != ConfigName {
		m.Name = strings.TrimSuffix(base, filepath.Ext(base))
	} else if m.Name == "" {
		m.Name = folderName(m.File)
	}
	m.DType = strings.TrimPrefix(cmp.Or(r.text("torch_dtype", "dtype"), outer.text("torch_dtype", "dtype")), "torch.")
	m.MaxPositions = r.sizeOr(0, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
		"max_sequence_length")
	if n := r.count(0, "num_nextn_predict_layers"); n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf(
			"layers that predict several tokens (num_nextn_predict_layers: %d) are published with the weights; "+
				"they are not counted, as engines load them for speculation alone", n))
	}
	if m.Tied && (m.Type == "falcon" || m.Type == "RefinedWebModel" || m.Type == "RefinedWeb") {
		m.Notes = append(m.Notes, fmt.Sprintf(
			"published files may store the head a second time, %d values more, though it is the embedding",
			int64(m.Vocab)*int64(m.Hidden)))
	}
	if m.Quantized = r.quantized(); m.Quantized != nil && len(m.Quantized.notUnderstood) > 0 {
		m.Notes = append(m.Notes, m.Quantized.note())
	}
}

// folderName is the name of the folder that a file is in, wherever one stands oneself.
func folderName(file string) string {
	dir := filepath.Dir(file)
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return filepath.Base(dir)
}

// Exists tells whether there is a config at a path, or in the folder there.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ConfigName))
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
