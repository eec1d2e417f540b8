package modelsize

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"llmparity/internal/gguf"
)

// numbered matches llama.cpp's names of split files.
var numbered = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

const maxParts = 4096

// openGGUF reads a file, and all parts beside it if the model is split.
func openGGUF(path string) (Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return Model{}, err
	}
	defer f.Close()
	count, err := f.Uint("split.count")
	if err != nil || count < 2 {
		return FromGGUF(f)
	}
	name := numbered.FindStringSubmatch(path)
	if name == nil || count > maxParts || fmt.Sprintf("%05d", count) != name[3] {
		return partial(f, f.Tensors, int(min(count, maxParts)), 1)
	}
	first, tensors, found := f, []gguf.Tensor(nil), 0
	for i := 1; i <= int(count); i++ {
		part, err := gguf.Open(fmt.Sprintf("%s-%05d-of-%s.gguf", name[1], i, name[3]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Model{}, err
		}
		defer part.Close() // until all are read: the first has the metadata
		if i == 1 {
			first = part
		}
		tensors = append(tensors, part.Tensors...)
		found++
	}
	if found < int(count) {
		return partial(first, tensors, int(count), found)
	}
	return fromGGUF(first, tensors)
}

// partial describes a model from some of its parts.
func partial(f *gguf.File, tensors []gguf.Tensor, count, found int) (Model, error) {
	m, err := fromGGUF(f, tensors)
	m.note("the model is split into %d parts, %d of them here: the weights of the others are not counted",
		count, found)
	m.Trust, m.Partial = Low, true
	return m, err
}
