package modelsize

import (
	"fmt"
	"regexp"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
)

// numbered matches llama.cpp's names of split files.
var numbered = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

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
	if name == nil || fmt.Sprintf("%05d", count) != name[3] {
		return Model{}, fault.New(fault.BadModel, fmt.Sprintf("keep the name that ends in -00001-of-%05d.gguf", count),
			"%s is one of %d parts of a model", path, count)
	}
	first, tensors := f, []gguf.Tensor(nil)
	for i := 1; i <= int(count); i++ {
		part, err := gguf.Open(fmt.Sprintf("%s-%05d-of-%s.gguf", name[1], i, name[3]))
		if err != nil {
			return Model{}, err
		}
		defer part.Close() // until all are read: the first has the metadata
		if i == 1 {
			first = part
		}
		tensors = append(tensors, part.Tensors...)
	}
	return fromGGUF(first, tensors)
}
