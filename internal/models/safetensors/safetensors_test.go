package safetensors

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

func tensorOf(name, dtype string, shape []int64, data ...byte) Weights {
	return Weights{Name: name, DType: dtype, Shape: shape, Data: func(write func([]byte) error) error {
		for piece := range slices.Chunk(data, 3) {
			if err := write(piece); err != nil {
				return err
			}
		}
		return nil
	}}
}

func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	check.Err(t, Write(&b, []Weights{tensorOf("a", "F16", []int64{2, 2}, 1, 2, 3, 4, 5, 6, 7, 8),
		tensorOf("b\"", "F32", []int64{1}, 9, 10, 11, 12)}))
	check.Err(t, os.WriteFile(filepath.Join(dir, File), b.Bytes(), 0o600))
	all, err := Read(dir)
	check.Err(t, err)
	if a := all["a"]; len(all) != 2 || a.DType != "F16" || !slices.Equal(a.Shape, []int64{2, 2}) || a.Bytes != 8 ||
		!bytes.Equal(b.Bytes()[a.At:a.At+8], []byte{1, 2, 3, 4, 5, 6, 7, 8}) || a.At%8 != 0 {
		t.Errorf("%+v", all)
	}
	if o := all[`b"`]; b.Bytes()[o.At] != 9 || o.At+o.Bytes != int64(b.Len()) {
		t.Errorf("%+v", o)
	}
	if err := Write(&b, []Weights{tensorOf("a", "F32", []int64{2}, 1, 2, 3, 4)}); err == nil {
		t.Error("a tensor that is too short was written")
	}
}

func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x", "y"} {
		var b bytes.Buffer
		check.Err(t, Write(&b, []Weights{tensorOf(name, "U8", []int64{1}, 7)}))
		check.Err(t, os.WriteFile(filepath.Join(dir, name+".safetensors"), b.Bytes(), 0o600))
	}
	index := filepath.Join(dir, Index)
	check.Err(t, os.WriteFile(index, []byte(`{"weight_map":{"x":"x.safetensors","y":"y.safetensors"}}`), 0o600))
	all, err := Read(dir)
	if err != nil || len(all) != 2 || filepath.Base(all["y"].Path) != "y.safetensors" {
		t.Errorf("%+v, %v", all, err)
	}
	check.Err(t, os.WriteFile(index, []byte(`{"weight_map":{"x":"../x.safetensors"}}`), 0o600))
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "is not in the folder") {
		t.Errorf("%v", err)
	}
}

// Damaged files are refused, and nothing outside of a file is read.
func TestDamage(t *testing.T) {
	for text, words := range map[string]string{
		"":                                   "not a safetensors file",
		"\xff\xff\xff\xff\xff\xff\xff\xff":   "truncated or not",
		"\x02\x00\x00\x00\x00\x00\x00\x00{}": "",
		"\x02\x00\x00\x00\x00\x00\x00\x00[]": "damaged header",
		"\x3a\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}    `:       "does not fit",
		"\x36\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}12345678`:   "does not fit",
		"\x37\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}12345678`:  "does not fit",
		"\x38\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"Q7","shape":[9,-9],"data_offsets":[0,4]}}12345678`: "does not fit",
	} {
		dir := t.TempDir()
		check.Err(t, os.WriteFile(filepath.Join(dir, File), []byte(text), 0o600))
		_, err := Read(dir)
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%q: %v, want %s", text, err, words)
		}
	}
}
