package hfconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"llmparity/internal/fault"
	"llmparity/internal/regular"
)

// maxConfig is far above any config there is: they have a few KB, those that list every layer's quantisation some
// hundred.
const maxConfig = 16 << 20

// readFile reads one of no more than so many bytes.
func readFile(path string, most int64) ([]byte, error) {
	text, err := regular.Read(path, most)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return text, nil
}

func unreadable(path string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fault.Wrap(fault.BadModel, err, "name a config.json or its folder", "%s can't be read", path)
}

// reader takes fields out of a JSON object. The first error stays, so that a family's sizes can be read one after the
// other and looked at once.
type reader struct {
	file   string
	prefix string // the object's own path in the file, with a dot behind it
	family string
	fields map[string]json.RawMessage
	err    error
}

func newReader(file string, text []byte) (*reader, error) {
	fields, err := object(text)
	if err != nil {
		return nil, bad(file, "a Hugging Face config.json is expected", "it is not a JSON object: %v", err)
	}
	return &reader{file: file, fields: fields}, nil
}

// object decodes a text that is one object and nothing behind it.
func object(text []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	var fields map[string]json.RawMessage
	if err := d.Decode(&fields); err != nil {
		return nil, plain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after its end")
	}
	if fields == nil {
		return nil, errors.New("it is null")
	}
	return fields, nil
}

// plain says what a JSON error means without Go's words.
func plain(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("unexpected end")
	case errors.As(err, &wrong):
		return fmt.Errorf("%s instead of an object", wrong.Value)
	}
	return err
}

// sub is the reader of an object within; an empty one where there is none.
func (r *reader) sub(name string) *reader {
	s := &reader{file: r.file, prefix: r.prefix + name + ".", family: r.family, err: r.err}
	raw, ok := r.get(name)
	if !ok {
		return s
	}
	fields, err := object(raw)
	if err != nil {
		s.fail(bad(r.file, "an object is right", "%s%s is %s", r.prefix, name, brief(raw)))
		r.fail(s.err)
	}
	s.fields = fields
	return s
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// get gives the first of several names that is there and isn't null.
func (r *reader) get(names ...string) (json.RawMessage, bool) {
	for _, name := range names {
		if raw, ok := r.fields[name]; ok && string(raw) != "null" {
			return raw, true
		}
	}
	return nil, false
}

// says tells whether a name is there, were it as null.
func (r *reader) says(name string) bool {
	_, ok := r.fields[name]
	return ok
}

func (r *reader) named(names []string) (string, json.RawMessage, bool) {
	for _, name := range names {
		if raw, ok := r.get(name); ok {
			return name, raw, true
		}
	}
	return "", nil, false
}

// most is the largest size that is read: products of two fit, and no model has larger ones.
const most = 1 << 30

// need reads a size that must be there.
func (r *reader) need(names ...string) int {
	name, raw, ok := r.named(names)
	if !ok {
		r.fail(bad(r.file, "add it, or give the model's sizes by flags (llmparity estimate --help)",
			"%s is missing; a model of model_type %s needs it", r.prefix+names[0], r.family))
		return 1
	}
	return r.size(name, raw, 1)
}

// size reads a size that may be missing.
func (r *reader) sizeOr(def int, names ...string) int {
	if name, raw, ok := r.named(names); ok {
		return r.size(name, raw, 1)
	}
	return def
}

// count is sizeOr where 0 is a number too.
func (r *reader) count(def int, names ...string) int {
	if name, raw, ok := r.named(names); ok {
		return r.size(name, raw, 0)
	}
	return def
}

func (r *reader) size(name string, raw json.RawMessage, least int) int {
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || v != math.Trunc(v) || v < float64(least) || v > most {
		r.fail(bad(r.file, fmt.Sprintf("a whole number from %d to %d is right", least, most), "%s%s is %s", r.prefix,
			name, brief(raw)))
		return 1
	}
	return int(v)
}

func (r *reader) flag(def bool, names ...string) bool {
	name, raw, ok := r.named(names)
	if !ok {
		return def
	}
	var v bool
	if err := json.Unmarshal(raw, &v); err != nil {
		r.fail(bad(r.file, "true or false is right", "%s%s is %s", r.prefix, name, brief(raw)))
	}
	return v
}

func (r *reader) text(names ...string) string {
	name, raw, ok := r.named(names)
	if !ok {
		return ""
	}
	var v string
	if err := json.Unmarshal(raw, &v); err != nil {
		r.fail(bad(r.file, "a string is right", "%s%s is %s", r.prefix, name, brief(raw)))
	}
	return v
}

// list reads an array of strings, numbers or flags as they stand.
func (r *reader) list(name string) []json.RawMessage {
	raw, ok := r.get(name)
	if !ok {
		return nil
	}
	var v []json.RawMessage
	if err := json.Unmarshal(raw, &v); err != nil {
		r.fail(bad(r.file, "a list is right", "%s%s is %s", r.prefix, name, brief(raw)))
	}
	return v
}

// numbers is the set of an array of whole numbers.
func (r *reader) numbers(name string) map[int]bool {
	set := map[int]bool{}
	for _, raw := range r.list(name) {
		set[r.size(name, raw, 0)] = true
	}
	return set
}

// brief shows a value in one short line.
func brief(raw json.RawMessage) string {
	s := fault.OneLine(string(raw))
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return s
}
