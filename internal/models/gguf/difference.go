package gguf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Difference returns in what the values of two models' tensors first differ; empty: in nothing. Their types and orders
// do not count, nor do divisors of rotations, which are settings. It is an error if the tensors are not the same ones.
func Difference(ctx context.Context, a, b []Weights) (string, error) {
	x, y := weightsOf(a), weightsOf(b)
	for _, pair := range [][2]map[string]Weights{{x, y}, {y, x}} {
		for name := range pair[0] {
			_, ok := pair[1][name]
			if embedding, tied := pair[1]["token_embd.weight"]; tied && name == "output.weight" && !ok {
				pair[1][name], ok = embedding, true // that is what the model uses
			}
			if !ok {
				return "", fmt.Errorf("only one of them has tensor %s", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x)) {
		if words, err := difference(ctx, name, x[name], y[name]); words != "" || err != nil {
			return words, err
		}
	}
	return "", nil
}

// weightsOf finds tensors by name.
func weightsOf(list []Weights) map[string]Weights {
	all := map[string]Weights{}
	for _, t := range list {
		if !strings.HasPrefix(t.Name, "rope_") {
			all[t.Name] = t
		}
	}
	return all
}

// difference returns in what two tensors first differ.
func difference(ctx context.Context, name string, a, b Weights) (string, error) {
	if !slices.Equal(a.Shape, b.Shape) {
		return fmt.Sprintf("tensor %s has the shape %d in one and %d in the other", name, a.Shape, b.Shape), nil
	}
	x, y := a.pull(), b.pull()
	defer x.stop()
	defer y.stop()
	for at := 0; ; {
		if err := ctx.Err(); err != nil {
			return "", context.Cause(ctx)
		}
		p, q, err := x.some(), y.some(), errors.Join(x.err, y.err)
		n := min(len(p), len(q))
		switch {
		case err != nil:
			return "", err
		case n == 0 && len(p) != len(q):
			return "", fmt.Errorf("tensor %s: %w", name, io.ErrUnexpectedEOF)
		case n == 0:
			return "", nil
		}
		for i := range n {
			if p[i] != q[i] && (p[i] == p[i] || q[i] == q[i]) { // NaN is like NaN
				return fmt.Sprintf("tensor %s differs: value %d is %g in one and %g in the other", name, at+i+1,
					p[i], q[i]), nil
			}
		}
		at += n
		x.left, y.left = p[n:], q[n:]
	}
}

// pulled hands out the values of a tensor.
type pulled struct {
	next func() ([]float32, bool)
	stop func()
	left []float32
	err  error
}

// errStopped ends a stream whose rest is not needed.
var errStopped = errors.New("stopped")

func (t Weights) pull() *pulled {
	p := &pulled{}
	p.next, p.stop = iter.Pull(func(yield func([]float32) bool) {
		err := t.floats(func(values []float32) error {
			if len(values) > 0 && !yield(values) {
				return errStopped
			}
			return nil
		})
		if !errors.Is(err, errStopped) {
			p.err = err
		}
	})
	return p
}

// some returns the next values; none at the end.
func (p *pulled) some() []float32 {
	if len(p.left) == 0 {
		p.left, _ = p.next()
	}
	return p.left
}

// floats calls write with the values, piece by piece.
func (t Weights) floats(write func([]float32) error) error {
	switch {
	case t.Stream != nil:
		return t.Stream(write)
	case t.Blocks == nil:
		return write(t.Values)
	}
	perBlock, size := t.Type.Block()
	var values []float32
	return t.Blocks(func(b []byte) error {
		n := len(b) / int(size) * int(perBlock)
		values = slices.Grow(values[:0], n)[:n]
		if err := Dequantise(t.Type, b, values); err != nil {
			return err
		}
		return write(values)
	})
}
