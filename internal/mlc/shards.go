package mlc

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"llmparity/internal/gguf"
	"llmparity/internal/workers"
)

// maxShard is the shard size of WebLLM's own packages.
const maxShard = 32 << 20

// cache is tensor-cache.json.
type cache struct {
	Metadata struct {
		ParamSize    int64   `json:"ParamSize"`
		ParamBytes   int64   `json:"ParamBytes"`
		BitsPerParam float64 `json:"BitsPerParam"`
	} `json:"metadata"`
	Records []Shard `json:"records"`
}

// Shard is a file of weights.
type Shard struct {
	File    string   `json:"dataPath"`
	Format  string   `json:"format"`
	Bytes   int64    `json:"nbytes"`
	Tensors []Tensor `json:"records"`
	MD5     string   `json:"md5sum"`

	params []param // those of the tensors
}

// Tensor is a weight and its position in a shard.
type Tensor struct {
	Name   string  `json:"name"`
	Shape  []int64 `json:"shape"`
	DType  string  `json:"dtype"`
	Format string  `json:"format"` // storage format; "f32-to-bf16" halves a float32
	Bytes  int64   `json:"nbytes"`
	Offset int64   `json:"byteOffset"`
}

// layOut assigns weights to shards in order, starting a new shard when the current one would become too large.
func layOut(list []param, d dtype) cache {
	var c cache
	for _, p := range list {
		size := p.values() * d.bytes
		if n := len(c.Records); n == 0 || c.Records[n-1].Bytes+size > maxShard {
			c.Records = append(c.Records, Shard{File: fmt.Sprintf("params_shard_%d.bin", n), Format: "raw-shard"})
		}
		s := &c.Records[len(c.Records)-1]
		s.Tensors = append(s.Tensors, Tensor{p.name, p.shape, d.name, "raw", size, s.Bytes})
		s.params = append(s.params, p)
		s.Bytes += size
		c.Metadata.ParamSize += p.values()
		c.Metadata.ParamBytes += size
	}
	c.Metadata.BitsPerParam = float64(8 * d.bytes)
	return c
}

// most limits the shards written at once, each of which needs some MiB.
const most = 16

// writeShards writes the weights into dir, one shard per core at a time, largest first. It stops at the first error.
func writeShards(ctx context.Context, f *gguf.File, a gguf.Architecture, d dtype, dir string) (cache, error) {
	c := layOut(params(a), d)
	order := make([]*Shard, len(c.Records))
	for i := range c.Records {
		order[i] = &c.Records[i]
	}
	slices.SortStableFunc(order, func(a, b *Shard) int { return cmp.Compare(b.Bytes, a.Bytes) })
	err := workers.Each(ctx, min(runtime.GOMAXPROCS(0), most), len(order), func(ctx context.Context, i int) error {
		w := &writer{file: f, dtype: d, dir: dir}
		return w.shard(ctx, order[i])
	})
	return c, err
}

// writer writes a shard.
type writer struct {
	file  *gguf.File
	dtype dtype
	dir   string
	rows  gguf.Rows
	piece []byte
}

// shard writes one shard and notes its hash.
func (w *writer) shard(ctx context.Context, s *Shard) (err error) {
	out, err := os.Create(filepath.Join(w.dir, s.File))
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()
	sum := md5.New()
	for _, p := range s.params {
		for _, part := range p.parts {
			if err := w.part(ctx, io.MultiWriter(out, sum), part); err != nil {
				return err
			}
		}
	}
	s.MD5 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// pieceBytes is roughly how much of a tensor is read and written at a time.
const pieceBytes = 1 << 20

// part writes a part's values in the package's order, piece by piece.
func (w *writer) part(ctx context.Context, out io.Writer, p part) error {
	t, ok := w.file.Tensor(p.tensor)
	if !ok {
		return fmt.Errorf("tensor %s is missing", p.tensor)
	}
	if p.count > 0 {
		t = t.Slice(p.first, p.count)
	}
	width, group := int(t.Shape[0]), max(p.headDim, 1)
	if p.vector {
		width = 1
	}
	// Whole heads, so that each piece can be reordered on its own.
	if err := w.rows.Reset(w.file, t, max(pieceBytes/(4*int(t.Shape[0])*group), 1)*group); err != nil {
		return err
	}
	for w.rows.Left() > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("write model package: %w", context.Cause(ctx))
		}
		values, err := w.rows.Next()
		if err != nil {
			return err
		}
		if w.piece, err = w.encode(w.piece[:0], values, width, p.headDim); err != nil {
			return overflow(w.file, p.tensor, err)
		}
		if _, err := out.Write(w.piece); err != nil {
			return err
		}
	}
	return nil
}

// encode appends values. A GGUF stores rows j and j+dim/2 of a head as rows 2j and 2j+1; the package has them half a
// head apart.
func (w *writer) encode(to []byte, values []float32, width, headDim int) (_ []byte, err error) {
	if headDim == 0 {
		return w.dtype.append(to, values)
	}
	for ; len(values) > 0; values = values[headDim*width:] {
		for first := range 2 {
			for row := first; row < headDim; row += 2 {
				if to, err = w.dtype.append(to, values[row*width:(row+1)*width]); err != nil {
					return to, err
				}
			}
		}
	}
	return to, nil
}
