package mlc

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"llmparity/internal/gguf"
)

// maxShard is the size that WebLLM's own packages keep to.
const maxShard = 32 << 20

// cache is tensor-cache.json.
type cache struct {
	Metadata struct {
		ParamSize    int64   `json:"ParamSize"`
		ParamBytes   int64   `json:"ParamBytes"`
		BitsPerParam float64 `json:"BitsPerParam"`
	} `json:"metadata"`
	Records []shard `json:"records"`
}

type shard struct {
	DataPath string   `json:"dataPath"`
	Format   string   `json:"format"`
	Bytes    int64    `json:"nbytes"`
	Records  []record `json:"records"`
	MD5      string   `json:"md5sum"`
}

type record struct {
	Name   string  `json:"name"`
	Shape  []int64 `json:"shape"`
	DType  string  `json:"dtype"`
	Format string  `json:"format"`
	Bytes  int64   `json:"nbytes"`
	Offset int64   `json:"byteOffset"`
}

// writeShards writes the weights into dir.
func writeShards(ctx context.Context, f *gguf.File, dir string) (cache, error) {
	var c cache
	l, err := f.Architecture()
	if err != nil {
		return c, err
	}
	w := &shardWriter{dir: dir}
	defer w.abandon()
	for _, p := range params(l) {
		if err := w.begin(p); err != nil {
			return c, err
		}
		for _, part := range p.parts {
			write := func(piece []byte) error {
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("write model package: %w", context.Cause(ctx))
				}
				return w.write(piece)
			}
			if err := part.each(f, write); err != nil {
				return c, err
			}
		}
		c.Metadata.ParamSize += p.bytes() / 4
		c.Metadata.ParamBytes += p.bytes()
	}
	c.Metadata.BitsPerParam = 32
	err = w.end()
	c.Records = w.shards
	return c, err
}

// shardWriter writes one shard after another; the last of shards is the one that is open.
type shardWriter struct {
	dir    string
	shards []shard
	file   *os.File
	sum    *digest
}

// begin makes room for a weight: a new shard, if the open one would grow too large.
func (w *shardWriter) begin(p param) error {
	if w.file == nil || w.last().Bytes+p.bytes() > maxShard {
		if err := w.end(); err != nil {
			return err
		}
		name := fmt.Sprintf("params_shard_%d.bin", len(w.shards))
		file, err := os.Create(filepath.Join(w.dir, name))
		if err != nil {
			return err
		}
		w.file, w.sum = file, newDigest()
		w.shards = append(w.shards, shard{DataPath: name, Format: "raw-shard"})
	}
	s := w.last()
	s.Records = append(s.Records, record{p.name, p.shape, "float32", "raw", p.bytes(), s.Bytes})
	return nil
}

func (w *shardWriter) last() *shard { return &w.shards[len(w.shards)-1] }

func (w *shardWriter) write(data []byte) error {
	w.sum.write(data)
	w.last().Bytes += int64(len(data))
	_, err := w.file.Write(data)
	return err
}

// end closes the open shard.
func (w *shardWriter) end() error {
	if w.file == nil {
		return nil
	}
	w.last().MD5 = w.sum.end()
	err := w.file.Close()
	w.file = nil
	return err
}

// abandon closes what an error left open.
func (w *shardWriter) abandon() {
	if w.file != nil {
		w.sum.end()
		w.file.Close()
	}
}

// digest is an MD5 that is computed beside the writing, which takes about as long.
type digest struct {
	pieces, free chan []byte
	sum          chan string
}

func newDigest() *digest {
	d := &digest{pieces: make(chan []byte, 2), free: make(chan []byte, 2), sum: make(chan string)}
	d.free <- nil
	d.free <- nil
	go func() {
		sum := md5.New()
		for piece := range d.pieces {
			sum.Write(piece)
			d.free <- piece
		}
		d.sum <- hex.EncodeToString(sum.Sum(nil))
	}()
	return d
}

// write takes a copy of data.
func (d *digest) write(data []byte) { d.pieces <- append((<-d.free)[:0], data...) }

// end gives the sum of all that was written, and must be called once.
func (d *digest) end() string {
	close(d.pieces)
	return <-d.sum
}
