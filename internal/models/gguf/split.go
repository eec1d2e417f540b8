package gguf

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// numbered matches llama.cpp's names of split files.
var numbered = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// joined returns a file with all parts of a split model, one after another. Any part stands for all, which must lie
// beside it. A file that is no part is returned as it is. After an error, f is closed.
func joined(f *File) (*File, error) {
	count, err := f.Uint("split.count")
	if err != nil || count < 2 {
		return f, nil
	}
	defer f.Close()
	name := numbered.FindStringSubmatch(f.Name)
	if name == nil || fmt.Sprintf("%05d", count) != name[3] {
		return nil, f.bad(fmt.Sprintf("give all parts the names that they had, which end in -NUMBER-of-%05d.gguf", count),
			"the file is one of %d parts of a model, but its name does not say which", count)
	}
	all := &File{Name: f.Name, entries: map[string]any{}, tensors: map[string]int{}}
	for i := 1; i <= int(count); i++ {
		part, err := open(fmt.Sprintf("%s-%05d-of-%s.gguf", name[1], i, name[3]))
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.parts = append(all.parts, part)
		if err := all.add(part, i == 1); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	all.source = parts(all.parts)
	return all, nil
}

// add appends a part. The first has the model's metadata.
func (f *File) add(part *File, first bool) error {
	if first {
		f.Version, f.Alignment = part.Version, part.Alignment
		for _, e := range part.Metadata {
			if !strings.HasPrefix(e.Key, "split.") { // about the files, not the model
				f.entries[e.Key] = e.Value
				f.Metadata = append(f.Metadata, e)
			}
		}
	}
	for _, t := range part.Tensors {
		if _, twice := f.tensors[t.Name]; twice {
			return part.bad(again, "tensor %q is also in another part", t.Name)
		}
		t.Offset += f.Size
		f.tensors[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	f.Size += part.Size
	return nil
}

// Paths lists the model's files: several if it is split.
func (f *File) Paths() []string {
	if f.parts == nil {
		return []string{f.Name}
	}
	var out []string
	for _, p := range f.parts {
		out = append(out, p.Name)
	}
	return out
}

// parts reads files as if they were one.
type parts []*File

// ReadAt implements io.ReaderAt.
func (p parts) ReadAt(b []byte, at int64) (n int, err error) {
	for _, one := range p {
		if at < one.Size && n < len(b) {
			got, err := io.NewSectionReader(one.source, 0, one.Size).ReadAt(b[n:], at)
			if n, at = n+got, at+int64(got); err != nil && !errors.Is(err, io.EOF) {
				return n, err
			}
		}
		at -= one.Size
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
