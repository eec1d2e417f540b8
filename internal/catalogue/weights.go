package catalogue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/mlc"
)

// Weights is a package's list of its weights: tensor-cache.json, or ndarray-cache.json as it was called once.
type Weights struct {
	Shards []Shard `json:"records"`
}

// Shard is a file of weights, and Tensor is one of them.
type (
	Shard  = mlc.Shard
	Tensor = mlc.Tensor
)

// Bytes is the size of all weights.
func (w Weights) Bytes() int64 {
	var n int64
	for _, s := range w.Shards {
		n += s.Bytes
	}
	return n
}

const (
	maxBytes  = 1 << 42 // 4 TiB, of a model: far above any that a browser can run
	maxShards = 1 << 16
)

// ParseWeights reads the list and checks that it makes sense as a whole: every weight is as large as its sizes and type
// say, lies inside its shard and on no other one, and together they fill it.
func ParseWeights(text []byte) (Weights, error) {
	var w Weights
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&w); err != nil {
		return Weights{}, err
	}
	if len(w.Shards) == 0 || len(w.Shards) > maxShards {
		return Weights{}, fmt.Errorf("it lists %d shards", len(w.Shards))
	}
	files, names := map[string]bool{}, map[string]bool{}
	var total int64
	for _, s := range w.Shards {
		if err := checkShard(s); err != nil {
			return Weights{}, err
		}
		// Some systems don't tell files apart by capitals.
		key := strings.ToLower(s.File)
		if files[key] || reserved(key) {
			return Weights{}, fmt.Errorf("shard %s is listed twice, or has the name of another file", s.File)
		}
		files[key] = true
		for _, t := range s.Tensors {
			if names[t.Name] {
				return Weights{}, fmt.Errorf("the weight %s is there twice", t.Name)
			}
			names[t.Name] = true
		}
		if total += s.Bytes; total > maxBytes {
			return Weights{}, fmt.Errorf("more than %d bytes in all", int64(maxBytes))
		}
	}
	return w, nil
}

// reserved tells whether another file of a stored package has the name, in small letters.
func reserved(name string) bool {
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".wasm") || strings.HasSuffix(name, partial) ||
		name == "tokenizer.model"
}

var sum = regexp.MustCompile(`^[0-9a-f]{32}$`)

// checkShard holds a shard against its weights.
func checkShard(s Shard) error {
	switch {
	case !plainName.MatchString(s.File):
		return fmt.Errorf("the shard %q is not a valid file name", s.File)
	case s.Bytes <= 0 || s.Bytes > maxBytes:
		return fmt.Errorf("the shard %s would have %d bytes", s.File, s.Bytes)
	case !sum.MatchString(s.MD5):
		return fmt.Errorf("the shard %s has %q for its MD5", s.File, s.MD5)
	}
	order := slices.Clone(s.Tensors)
	slices.SortStableFunc(order, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes, b.Bytes))
	})
	var end int64
	for _, t := range order {
		want, err := sizeOf(t)
		switch {
		case err != nil:
			return fmt.Errorf("the weight %q: %w", t.Name, err)
		case t.Bytes != want:
			return fmt.Errorf("the weight %q is %s %v, which takes %d bytes, not %d", t.Name, t.DType, t.Shape, want,
				t.Bytes)
		case t.Offset < 0 || t.Offset > s.Bytes-t.Bytes:
			return fmt.Errorf("the weight %q, %d bytes from %d, is not inside %s, which has %d", t.Name, t.Bytes,
				t.Offset, s.File,
				s.Bytes)
		case t.Offset < end:
			return fmt.Errorf("the weight %q begins in %s at %d, inside another one", t.Name, s.File, t.Offset)
		case t.Offset > end:
			return fmt.Errorf("%d bytes of %s from %d belong to no weight", t.Offset-end, s.File, end)
		}
		end = t.Offset + t.Bytes
	}
	if end != s.Bytes {
		return fmt.Errorf("the weights in %s take %d bytes, it has %d", s.File, end, s.Bytes)
	}
	return nil
}

// sizeOf is how many bytes the weight takes by its sizes and type.
func sizeOf(t Tensor) (int64, error) {
	if t.Name == "" {
		return 0, errors.New("it has no name")
	}
	if slices.ContainsFunc(t.Shape, func(n int64) bool { return n < 1 }) {
		return 0, fmt.Errorf("it has the sizes %v", t.Shape)
	}
	return mlc.StoredBytes(t.DType, t.Format, t.Shape)
}
