package models

import (
	"io"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
)

// llama.cpp names a file by the folder that it was converted from; people know the model by another name.
func TestModelsHaveTheNamesThatPeopleKnow(t *testing.T) {
	const tags = "8k-lc100k-mix1-ep2"
	file, _ := models(t)
	for _, c := range []struct{ file, name, base, size, finetune, want string }{
		{"SmolLM2-135M-Instruct.Q4_1.gguf", "Smollm2 135M 8k Lc100K Mix1 Ep2", "smollm2", "135M", tags,
			"SmolLM2 135M Instruct"},
		{"mine-Q4_K_M.gguf", "Smollm2 135M 8k Lc100K Mix1 Ep2", "smollm2", "135M", tags, "SmolLM2 135M"},
		{"model.gguf", "Qwen2.5 0.5B Instruct Ft", "qwen2.5", "0.5B", "Instruct", "Qwen2.5 0.5B Instruct"},
		{"qwen2.5-0.5b-instruct-q8_0.gguf", "Qwen", "Qwen2.5", "0.5B", "", "Qwen2.5 0.5B Instruct"},
		{"model.gguf", "Llama 3.2 1B Instruct", "Llama-3.2", "1B", "Instruct", ""},
		{"tiny.gguf", "tiny-llama", "", "", "", ""},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		check.Err(t, renamed(file, path, map[string]string{"general.name": c.name, "general.basename": c.base,
			"general.size_label": c.size, "general.finetune": c.finetune}))
		m, err := Open(t.Context(), path, 0)
		check.Err(t, err)
		if m.Name != c.name || m.Title != c.want {
			t.Errorf("%s: %q is titled %q, want %q", c.file, m.Name, m.Title, c.want)
		}
	}
}

// renamed copies a GGUF with other names of its model.
func renamed(from, to string, names map[string]string) error {
	f, err := gguf.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	var metadata []gguf.Entry
	for _, e := range f.Metadata {
		if _, has := names[e.Key]; !has {
			metadata = append(metadata, e)
		}
	}
	for key, value := range names {
		if value != "" {
			metadata = append(metadata, gguf.Entry{Key: key, Value: value})
		}
	}
	return whole.Write(to, func(w io.Writer) error { return gguf.Write(w, metadata, f.Unquantised()) })
}
