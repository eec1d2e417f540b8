package convert

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/onnx"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// random writes a random model as a GGUF.
func random(t testing.TB, spec tiny.Spec) string {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, tiny.WriteRandom(&b, spec))
	path := filepath.Join(t.TempDir(), "random.gguf")
	check.Err(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// written is a model that was written, with its initializers as another program would find them.
type written struct {
	onnx.Model
	of    Written
	bytes map[string][]byte
	dims  map[string][]int64
}

func write(t testing.TB, path string, o Options) written {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	of, err := Write(t.Context(), path, dir, o)
	check.Err(t, err)
	m, err := onnx.Open(dir)
	check.Err(t, err)
	w := written{m, of, map[string][]byte{}, map[string][]int64{}}
	for _, graph := range fields(check.Read(t, filepath.Join(dir, filepath.FromSlash(m.File))))[7] {
		for _, one := range fields(graph)[5] {
			w.initializer(t, one)
		}
	}
	return w
}

// fields are the contents of a message's fields, by their numbers. A number's is its encoding.
func fields(m []byte) map[uint64][][]byte {
	out := map[uint64][][]byte{}
	for len(m) > 0 {
		tag, n := binary.Uvarint(m)
		v, read := binary.Uvarint(m[n:])
		part := m[n : n+read]
		switch tag & 7 {
		case wireBytes:
			part = m[n+read : n+read+int(v)]
			read += int(v)
		case wireFixed4:
			part, read = m[n:n+4], 4
		}
		out[tag>>3], m = append(out[tag>>3], part), m[n+read:]
	}
	return out
}

func (w *written) initializer(t testing.TB, m []byte) {
	of, where := fields(m), map[string]string{}
	name := string(of[8][0])
	for _, dim := range of[1] {
		n, _ := binary.Uvarint(dim)
		w.dims[name] = append(w.dims[name], int64(n))
	}
	for _, entry := range of[13] {
		where[string(fields(entry)[1][0])] = string(fields(entry)[2][0])
	}
	if where["location"] == "" {
		return
	}
	data := check.Read(t, filepath.Join(w.Dir, "onnx", where["location"]))
	at, _ := strconv.Atoi(where["offset"])
	n, _ := strconv.Atoi(where["length"])
	w.bytes[name] = data[at : at+n]
}

func floats(b []byte) (out []float32) {
	for ; len(b) > 0; b = b[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return out
}

// A matrix is stored by columns, a vector and a tied embedding as they are, in as many files as need be.
func TestWeightsAreThoseOfTheFile(t *testing.T) {
	was := maxData
	t.Cleanup(func() { maxData = was })
	maxData = 100 << 10
	path := random(t, tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Tied: true, Seed: 7})
	w := write(t, path, Options{Context: 64})
	f, err := gguf.Open(path)
	check.Err(t, err)
	defer f.Close()
	compared := 0
	for _, tensor := range f.Tensors {
		want, err := f.Floats(tensor)
		check.Err(t, err)
		got := floats(w.bytes[tensor.Name])
		if by := w.bytes[tensor.Name+"_columns"]; by != nil {
			cols, rows := int(tensor.Shape[0]), int(tensor.Shape[1])
			if dims := w.dims[tensor.Name+"_columns"]; !slices.Equal(dims, []int64{int64(cols), int64(rows)}) {
				t.Errorf("%s: dimensions %v", tensor.Name, dims)
			}
			values := floats(by)
			for i := range want {
				got = append(got, values[i%cols*rows+i/cols])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d values, not those of the file", tensor.Name, len(got))
		}
		compared++
	}
	if compared < 10 || len(w.Data) < 3 || w.Form != "fp32" || w.KVDType != "f32" || w.DType != "f32" ||
		w.of.Same != record.SameBits || w.of.Kept || w.Bytes != w.Stored["f32"]+w.Stored["i64"] {
		t.Errorf("%d tensors, %+v, %+v", compared, w.Model, w.of)
	}
	config := string(check.Read(t, filepath.Join(w.Dir, "config.json")))
	if want := `"model.onnx": ` + strconv.Itoa(len(w.Data)); !strings.Contains(config, want) {
		t.Errorf("the configuration lacks %s:\n%s", want, config)
	}
}

// MatMulNBits has the value (number - 8) × scale, two neighbours a byte.
func TestQ4KeepsItsBits(t *testing.T) {
	path := random(t, tiny.Spec{Hidden: 256, Heads: 4, KVHeads: 2, HeadDim: 64, Type: "Q4_0", Seed: 2})
	for dtype, form := range map[string]string{"f32": "q4", "f16": "q4f16"} {
		w := write(t, path, Options{Context: 64, DType: dtype})
		f, err := gguf.Open(path)
		check.Err(t, err)
		defer f.Close()
		tensor, _ := f.Tensor("blk.1.ffn_down.weight")
		want, err := f.Floats(tensor)
		check.Err(t, err)
		numbers, scales := w.bytes[tensor.Name+"_q4"], w.bytes[tensor.Name+"_scales"]
		for i, v := range want {
			number := numbers[i/2] >> (i % 2 * 4) & 15
			scale := gguf.Half(binary.LittleEndian.Uint16(scales[min(i/block*2, len(scales)-2):]))
			if dtype == "f32" {
				scale = floats(scales[i/block*4 : i/block*4+4])[0]
			}
			if got := (float32(number) - 8) * scale; got != v {
				t.Fatalf("%s: value %d is %v, want %v", dtype, i, got, v)
			}
		}
		if w.Form != form || !w.of.Kept || w.KVDType != dtype || w.Stored["uint8"] == 0 {
			t.Errorf("%+v, %+v", w.Model, w.of)
		}
	}
}

func TestRefusals(t *testing.T) {
	narrow := random(t, tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 12, Seed: 1})
	_, err := Write(t.Context(), narrow, filepath.Join(t.TempDir(), "out"), Options{Context: 64})
	if fault.Of(err) != fault.UnknownArch || !strings.Contains(err.Error(), "heads have 12 values") {
		t.Errorf("narrow heads: %v", err)
	}
	path := random(t, tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, Seed: 1})
	if _, err := Write(t.Context(), path, filepath.Join(t.TempDir(), "out"),
		Options{Context: 64, SHA256: "another"}); fault.Of(err) != fault.BadModel {
		t.Errorf("a replaced file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "out")
	_, err = Write(ctx, path, dir, Options{Context: 64})
	if _, left := os.Stat(dir); !errors.Is(err, context.Canceled) || left == nil {
		t.Errorf("cancelled: %v", err)
	}
}
