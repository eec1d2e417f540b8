package hfconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
)

// maxConfig limits a config: they have a few KB, or some hundred if they list the quantisation of every layer.
const maxConfig = 16 << 20

func readFile(path string, limit int64) ([]byte, error) {
	text, err := regular.Read(path, limit)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return text, nil
}

func unreadable(path string, err error) error {
	return fault.Wrap(fault.BadModel, regular.Cause(err), "name a config.json or its folder", "cannot read %s", path)
}

// reader reads fields of a JSON object. It keeps the first error, so that a family's fields can be read without checks
// in between.
type reader struct {
	file   string
	prefix string // path of the object in the file, with a dot at its end
	family string
	fields map[string]json.RawMessage
	err    error
}

// object decodes a text that consists of one object.
func object(text []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(text, &fields)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("%s instead of an object", wrong.Value)
	}
	if err == nil && fields == nil {
		err = errors.New("it is null")
	}
	return fields, err
}

// sub returns the reader of an object in the object; an empty one if it is missing.
func (r *reader) sub(name string) *reader {
	s := &reader{file: r.file, prefix: r.prefix + name + ".", family: r.family, err: r.err}
	_, raw, ok := r.get(name)
	if !ok {
		return s
	}
	var err error
	if s.fields, err = object(raw); err != nil {
		r.wrong(name, raw, "want an object")
		s.err = r.err
	}
	return s
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// wrong fails because of a field's value.
func (r *reader) wrong(name string, raw json.RawMessage, want string) {
	r.fail(bad(r.file, want, "%s%s is %s", r.prefix, name, brief(raw)))
}

// get returns the first field of several names that is there and not null.
func (r *reader) get(names ...string) (name string, raw json.RawMessage, ok bool) {
	for _, name := range names {
		if raw, ok := r.fields[name]; ok && string(raw) != "null" {
			return name, raw, true
		}
	}
	return "", nil, false
}

// says reports whether a field is there, even if it is null.
func (r *reader) says(name string) bool {
	_, ok := r.fields[name]
	return ok
}

// value reads a field of some type, or returns def.
func value[T any](r *reader, def T, want string, names ...string) T {
	name, raw, ok := r.get(names...)
	if ok && json.Unmarshal(raw, &def) != nil {
		r.wrong(name, raw, want)
	}
	return def
}

func (r *reader) flag(def bool, names ...string) bool {
	return value(r, def, "want true or false", names...)
}

func (r *reader) text(names ...string) string { return value(r, "", "want a string", names...) }

// list reads an array without decoding its elements.
func (r *reader) list(name string) []json.RawMessage {
	return value(r, []json.RawMessage(nil), "want a list", name)
}

// most limits sizes, so that the product of two fits.
const most = 1 << 30

// need reads a size that must be there.
func (r *reader) need(names ...string) int {
	name, raw, ok := r.get(names...)
	if !ok {
		r.fail(bad(r.file, "add it, or give the model's sizes by flags (llmparity estimate --help)",
			"%s is missing; a model of model_type %s needs it", r.prefix+names[0], r.family))
		return 1
	}
	return r.size(name, raw, 1)
}

// sizeOr reads a size that may be missing.
func (r *reader) sizeOr(def int, names ...string) int {
	if name, raw, ok := r.get(names...); ok {
		return r.size(name, raw, 1)
	}
	return def
}

// count is sizeOr for sizes that may be 0.
func (r *reader) count(def int, names ...string) int {
	if name, raw, ok := r.get(names...); ok {
		return r.size(name, raw, 0)
	}
	return def
}

func (r *reader) size(name string, raw json.RawMessage, least int) int {
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || v != math.Trunc(v) || v < float64(least) || v > most {
		r.wrong(name, raw, fmt.Sprintf("want a whole number from %d to %d", least, most))
		return 1
	}
	return int(v)
}

// numbers reads an array of whole numbers as a set.
func (r *reader) numbers(name string) map[int]bool {
	set := map[int]bool{}
	for _, raw := range r.list(name) {
		set[r.size(name, raw, 0)] = true
	}
	return set
}

// brief shortens a value to one line.
func brief(raw json.RawMessage) string {
	s := fault.OneLine(string(raw))
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return s
}
