package gguf

import (
	"bufio"
	"bytes"
)

// Sketch returns a file as Write would write it. Of tensors only those with Values can be read; the others are zeros.
func Sketch(name string, metadata []Entry, tensors []Weights) (*File, error) {
	var header bytes.Buffer
	e := &encoder{out: bufio.NewWriter(&header)}
	e.header(metadata, tensors)
	if err := e.end(); err != nil {
		return nil, err
	}
	s := sketch{{0, header.Bytes()}}
	at := int64(header.Len())
	for _, t := range tensors {
		if t.Values != nil {
			var values bytes.Buffer
			e := &encoder{out: bufio.NewWriter(&values)}
			e.tensor(t)
			if err := e.end(); err != nil {
				return nil, err
			}
			s = append(s, span{at, values.Bytes()})
		}
		at += int64(pad(t.size()))
	}
	return Read(s, at, name)
}

// sketch is bytes at some positions; everywhere else are zeros.
type sketch []span

type span struct {
	at    int64
	bytes []byte
}

// ReadAt never ends: Read keeps within the size.
func (s sketch) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	for _, part := range s {
		from, to := part.at-at, part.at+int64(len(part.bytes))-at
		if to > 0 && from < int64(len(b)) {
			copy(b[max(from, 0):], part.bytes[max(-from, 0):])
		}
	}
	return len(b), nil
}
