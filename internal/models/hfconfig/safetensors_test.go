package hfconfig

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

// tensorFile is a safetensors file with this header and so many bytes of data.
func tensorFile(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

const twoLayers = `{"__metadata__":{"format":"pt"},"model.embed_tokens.weight":{"dtype":"BF16","shape":[10,8],"data_offsets":[0,160]},
"model.layers.0.self_attn.k_proj.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[160,224]},"model.layers.0.self_attn.v_proj.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[224,288]},
"model.layers.1.self_attn.k_proj.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[288,352]},"model.layers.1.self_attn.v_proj.weight":{"dtype":"BF16","shape":[2,8],"data_offsets":[352,384]}}`

func TestSafetensors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	check.Err(t, os.WriteFile(path, tensorFile(twoLayers, 384), 0o600))
	for _, where := range []string{dir, path} {
		if s, err := Safetensors(where); err != nil || len(s.Bytes) != 1 || s.Bytes["bf16"] != 384 || s.Values != 192 {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

func TestDamagedSafetensors(t *testing.T) {
	whole := tensorFile(twoLayers, 384)
	for name, text := range map[string][]byte{
		"empty": nil, "short": whole[:5], "cut in its header": whole[:40], "cut in its data": whole[:len(whole)-1],
		"no JSON":          tensorFile("{{", 10),
		"a header of 2^63": append(bytes.Repeat([]byte{0xff}, 8), whole[8:]...),
		"backwards":        tensorFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 8),
		"negative sizes":   tensorFile(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 8),
		"huge sizes":       tensorFile(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}}`, 8),
		"a number":         tensorFile(`{"a":4}`, 8),
	} {
		path := filepath.Join(t.TempDir(), "x.safetensors")
		check.Err(t, os.WriteFile(path, text, 0o600))
		if _, err := Safetensors(path); fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(tensorFile(twoLayers, 384))
	f.Add(tensorFile(`{}`, 0))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := Stored{Bytes: map[string]int64{}}
		err := s.parse("x", bytes.NewReader(text), int64(len(text)))
		if err != nil && fault.Of(err) != fault.BadModel {
			t.Fatalf("%v has class %s", err, fault.Of(err))
		}
		for dtype, n := range s.Bytes {
			if n < 0 {
				t.Fatalf("%s: %d bytes", dtype, n)
			}
		}
	})
}
