package mlc

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	md5simd "github.com/minio/md5-simd"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/workers"
	"llmparity/internal/models/gguf"
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

	stored []stored // the tensors
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

// layOut assigns tensors to shards in order, starting a new shard when the current one would become too large.
func layOut(list []stored, values int64) (c cache, err error) {
	for _, t := range list {
		size, err := StoredBytes(t.dtype, "raw", t.shape)
		if err != nil {
			return c, fmt.Errorf("weight %s: %w", t.name, err)
		}
		if n := len(c.Records); n == 0 || c.Records[n-1].Bytes+size > maxShard {
			c.Records = append(c.Records, Shard{File: fmt.Sprintf("params_shard_%d.bin", n), Format: "raw-shard"})
		}
		s := &c.Records[len(c.Records)-1]
		s.Tensors = append(s.Tensors, Tensor{t.name, t.shape, t.dtype, "raw", size, s.Bytes})
		s.stored = append(s.stored, t)
		s.Bytes += size
		c.Metadata.ParamBytes += size
	}
	c.Metadata.ParamSize = values
	c.Metadata.BitsPerParam = 8 * float64(c.Metadata.ParamBytes) / float64(values)
	return c, nil
}

// atOnce is how many shards are written at once. Each needs little memory, MD5 is much of the work, and a core hashes
// eight shards in the time of one.
const atOnce = 8

// writeShards writes the weights into dir, the largest shards first. It stops at the first error.
func writeShards(ctx context.Context, m model, dir string) (cache, error) {
	values := int64(0)
	for _, p := range params(m.architecture) {
		values += product(p.shape)
	}
	c, err := layOut(m.tensors(), values)
	if err != nil {
		return c, err
	}
	order := make([]*Shard, len(c.Records))
	for i := range c.Records {
		order[i] = &c.Records[i]
	}
	slices.SortStableFunc(order, func(a, b *Shard) int { return cmp.Compare(b.Bytes, a.Bytes) })
	sums := md5simd.NewServer()
	defer sums.Close()
	err = workers.Each(ctx, atOnce, len(order), func(ctx context.Context, i int) error {
		w := &writer{file: m.file, dir: dir, sums: sums}
		return w.shard(ctx, order[i])
	})
	return c, err
}

// writer writes a shard.
type writer struct {
	file  *gguf.File
	dir   string
	sums  md5simd.Server
	rows  gguf.Rows
	piece []byte
	q4    []byte // blocks
}

// shard writes one shard and notes its hash.
func (w *writer) shard(ctx context.Context, s *Shard) (err error) {
	out, err := os.Create(filepath.Join(w.dir, s.File))
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()
	sum := w.sums.NewHash()
	defer sum.Close()
	for _, t := range s.stored {
		for _, part := range t.parts {
			if err := w.part(ctx, io.MultiWriter(out, sum), part, t); err != nil {
				return err
			}
		}
	}
	s.MD5 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// pieceBytes is roughly how much of a tensor is read and written at a time.
const pieceBytes = 1 << 17

// part writes a part's rows in the package's order, piece by piece.
func (w *writer) part(ctx context.Context, out io.Writer, p part, s stored) error {
	t, ok := w.file.Tensor(p.tensor)
	if !ok {
		return fmt.Errorf("tensor %s is missing", p.tensor)
	}
	t = t.Slice(p.first, p.rows)
	width, group := int(t.Shape[0]), max(p.headDim, 1)
	if len(t.Shape) == 1 {
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
		if err := w.read(t.Type, width, p.headDim, s); err != nil {
			if errors.As(err, new(errRange)) {
				err = fault.Wrap(fault.UnknownArch, err, "convert it to float32",
					"%s: tensor %s cannot be stored as float16", w.file.Name, p.tensor)
			}
			return err
		}
		if _, err := out.Write(w.piece); err != nil {
			return err
		}
	}
	return nil
}

// blocks returns the next rows as they are stored, or requantised, and the bytes of a row.
func (w *writer) blocks(width int, requantise bool) ([]byte, int, error) {
	if !requantise {
		return w.rows.NextBlocks()
	}
	values, err := w.rows.Next()
	if err == nil {
		w.q4, err = QuantizeQ4(w.q4[:0], values)
	}
	return w.q4, width / groupQ4 * blockQ4_0, err
}

// read reads the next piece of a tensor of a type.
func (w *writer) read(t gguf.Type, width, headDim int, s stored) (err error) {
	if s.row != nil {
		blocks, size, err := w.blocks(width, s.quantised && t != gguf.Q4_0)
		if err != nil {
			return err
		}
		w.piece, err = reordered(w.piece[:0], blocks, size, headDim, func(to, rows []byte) (_ []byte, err error) {
			for ; len(rows) > 0 && err == nil; rows = rows[size:] {
				to, err = s.row(to, rows[:size])
			}
			return to, err
		})
		return err
	}
	d, err := floatsOf(s.dtype)
	if err != nil {
		return err
	}
	if d.ID == uint32(t) {
		blocks, _, err := w.rows.NextBlocks()
		if err == nil {
			w.piece, err = reordered(w.piece[:0], blocks, width*int(d.Bytes), headDim, appendBytes)
		}
		return err
	}
	values, err := w.rows.Next()
	if err == nil {
		w.piece, err = reordered(w.piece[:0], values, width, headDim, d.append)
	}
	return err
}

func appendBytes(to, from []byte) ([]byte, error) { return append(to, from...), nil }

// reordered appends rows of a width. A GGUF stores rows j and j+dim/2 of a head as rows 2j and 2j+1; the package has
// them half a head apart.
func reordered[T any](to []byte, rows []T, width, headDim int, add func([]byte, []T) ([]byte, error)) (
	_ []byte, err error) {
	if headDim == 0 {
		return add(to, rows)
	}
	for ; len(rows) > 0; rows = rows[headDim*width:] {
		for first := range 2 {
			for row := first; row < headDim; row += 2 {
				if to, err = add(to, rows[row*width:(row+1)*width]); err != nil {
					return to, err
				}
			}
		}
	}
	return to, nil
}
