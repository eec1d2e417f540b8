// Package onnx describes ONNX models in folders of the form that transformers.js reads. It reads the description of a
// model's graph, and no weights, so that a file of any size needs little memory. Package convert writes such folders.
package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
)

// Model is an ONNX model in a folder of the form that transformers.js reads: config.json, tokenizer.json, and the
// model's files in onnx.
type Model struct {
	Dir     string
	File    string           // below Dir
	Data    []string         // other files of weights, below Dir
	Form    string           // of the weights, as transformers.js calls it: fp32, fp16, q4 …
	DType   string           // our name of that
	KVDType string           // f32 or f16
	Stored  map[string]int64 // bytes of weights by type
	Bytes   int64            // of all weights
}

// forms are those of models, by what the file's name has after "model".
var forms = map[string]string{"": "fp32", "_fp16": "fp16", "_int8": "int8", "_uint8": "uint8", "_quantized": "q8",
	"_q4": "q4", "_q4f16": "q4f16", "_bnb4": "bnb4", "_q2": "q2", "_q2f16": "q2f16", "_q1": "q1", "_q1f16": "q1f16"}

var fileName = regexp.MustCompile(`^model(_\w+)?\.onnx$`)

// In lists the models of a folder.
func In(dir string) (files []string) {
	all, _ := filepath.Glob(filepath.Join(dir, "onnx", "*.onnx")) // the pattern is valid
	return slices.DeleteFunc(all, func(path string) bool { return !fileName.MatchString(filepath.Base(path)) })
}

// Open reads the description of a model: a file, or the only one of a folder.
func Open(path string) (Model, error) {
	again := "name a file such as onnx/model.onnx beside config.json and tokenizer.json"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files := In(path)
		if len(files) != 1 {
			var names []string
			for _, f := range files {
				names = append(names, filepath.Base(f))
			}
			return Model{}, fault.New(fault.BadModel, again, "%s has %d ONNX models: %s", path, len(files),
				strings.Join(names, ", "))
		}
		path = files[0]
	}
	dir, name := filepath.Split(path)
	m := Model{Dir: filepath.Dir(filepath.Clean(dir)), File: "onnx/" + name, Stored: map[string]int64{}}
	found := fileName.FindStringSubmatch(name)
	if found == nil || filepath.Base(filepath.Clean(dir)) != "onnx" || forms[found[1]] == "" {
		return m, fault.New(fault.BadModel, again, "%s is not a file that transformers.js would load", path)
	}
	m.Form = forms[found[1]]
	m.DType = dtype.Canonical(m.Form)
	f, err := regular.Open(path)
	if err != nil {
		return m, fault.Wrap(fault.BadModel, regular.Cause(err), again, "cannot read %s", path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = m.read(span{f, 0, info.Size()})
	}
	if err == nil {
		err = m.complete()
	}
	if err != nil {
		return m, fault.Wrap(fault.BadModel, err, "download or convert it again", "%s", path)
	}
	return m, nil
}

// complete checks what the model needs beside its file.
func (m *Model) complete() error {
	if m.KVDType == "" {
		return errors.New("it has no input past_key_values: it is not a text generation model with a KV cache")
	}
	for _, name := range append([]string{"config.json", "tokenizer.json", "tokenizer_config.json"}, m.Data...) {
		if _, err := os.Stat(filepath.Join(m.Dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("its folder lacks %s", name)
		}
	}
	for _, n := range m.Stored {
		m.Bytes += n
	}
	return nil
}

// Wire types of a message's fields, whose numbers are those of onnx.proto3.
const (
	wireVarint = 0
	wireFixed8 = 1 // eight bytes
	wireBytes  = 2
	wireFixed4 = 5
)

// span is a part of a file: an encoded message.
type span struct {
	from       io.ReaderAt
	begin, end int64
}

// field is a field of a message. A number is in value, other content in part.
type field struct {
	number int
	value  uint64
	part   span
}

var errDamaged = errors.New("the file is damaged")

// each visits the fields of a message, without reading their contents.
func (s span) each(visit func(field) error) error {
	varint := func() uint64 {
		var b [binary.MaxVarintLen64]byte
		n := max(0, min(int64(len(b)), s.end-s.begin)) // beyond the end, if the tag was cut off
		if _, err := s.from.ReadAt(b[:n], s.begin); n == 0 || err != nil && !errors.Is(err, io.EOF) {
			s.begin = s.end + 1
			return 0
		}
		v, read := binary.Uvarint(b[:n])
		if s.begin += int64(read); read <= 0 {
			s.begin = s.end + 1
		}
		return v
	}
	for s.begin < s.end {
		tag := varint()
		f := field{number: int(tag >> 3)}
		size := uint64(0)
		switch tag & 7 {
		case wireVarint:
			f.value = varint()
		case wireBytes:
			size = varint()
		case wireFixed8:
			size = 8
		case wireFixed4:
			size = 4
		default:
			return errDamaged
		}
		if s.begin > s.end || size > uint64(s.end-s.begin) {
			return errDamaged
		}
		f.part = span{s.from, s.begin, s.begin + int64(size)}
		s.begin += int64(size)
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// text reads a short text.
func (s span) text() (string, error) {
	b := make([]byte, min(s.end-s.begin, 1<<12))
	_, err := s.from.ReadAt(b, s.begin)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(b), err
}

// read reads the graph's weights and inputs.
func (m *Model) read(s span) error {
	graphs := 0
	err := s.each(func(f field) error {
		if f.number != 7 {
			return nil
		}
		graphs++
		return f.part.each(func(f field) error {
			switch f.number {
			case 5:
				return m.weight(f.part)
			case 11:
				return m.input(f.part)
			}
			return nil
		})
	})
	if err == nil && graphs != 1 {
		err = errDamaged
	}
	return err
}

// names of the types of weights.
var names = map[uint64]string{1: "f32", 2: "uint8", 3: "int8", 6: "i32", 7: "i64", 10: "f16", 16: "bf16", 21: "uint4",
	22: "int4"}

// weight adds an initializer's bytes, which are in the file or in another one.
func (m *Model) weight(s span) error {
	kind, bytes := uint64(0), int64(0)
	err := s.each(func(f field) error {
		switch f.number {
		case 2:
			kind = f.value
		case 4, 5, 7, 9, 10, 11: // the forms that values in the file can have
			bytes += f.part.end - f.part.begin
		case 13:
			return f.part.entry(func(key, value string) error {
				n, err := strconv.ParseInt(value, 10, 64)
				switch {
				case key == "location" && !filepath.IsLocal(value):
					return fmt.Errorf("weights are in %q, which is not in its folder", value)
				case key == "location" && !slices.Contains(m.Data, "onnx/"+value):
					m.Data = append(m.Data, "onnx/"+value)
				case key == "length" && (err != nil || n < 0 || n > 1<<42):
					return errDamaged
				case key == "length":
					bytes += n
				}
				return nil
			})
		}
		return nil
	})
	m.Stored[names[kind]] += bytes
	return err
}

// entry reads a key and its value.
func (s span) entry(do func(key, value string) error) error {
	var texts [3]string
	err := s.each(func(f field) (err error) {
		if f.number == 1 || f.number == 2 {
			texts[f.number], err = f.part.text()
		}
		return err
	})
	if err != nil {
		return err
	}
	return do(texts[1], texts[2])
}

// input looks for the type of the KV cache.
func (m *Model) input(s span) error {
	name, kind := "", uint64(0)
	err := s.each(func(f field) (err error) {
		switch f.number {
		case 1:
			name, err = f.part.text()
		case 2: // a type, of a tensor, of elements
			err = f.part.each(func(f field) error {
				return f.part.each(func(f field) error {
					if f.number == 1 {
						kind = f.value
					}
					return nil
				})
			})
		}
		return err
	})
	if strings.HasPrefix(name, "past_key_values.") {
		m.KVDType = names[kind]
	}
	return err
}
