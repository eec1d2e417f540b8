package models

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/models/onnx"
	"llmparity/internal/models/safetensors"
	"llmparity/internal/record"
)

// isONNX recognises a file, or a folder with some.
func isONNX(path string, info fs.FileInfo, _ string) bool {
	if info.IsDir() { // what else has safetensors is for every engine
		files, _ := safetensors.Files(path)
		return len(onnx.In(path)) > 0 && len(files) == 0
	}
	return info.Mode().IsRegular() && strings.EqualFold(filepath.Ext(path), ".onnx")
}

// openONNX describes an ONNX model. A context of 0 is the model's maximum.
func openONNX(ctx context.Context, path, typed string, window int) (Model, error) {
	o, err := onnx.Open(path)
	if err != nil {
		return Model{}, err
	}
	of, err := modelsize.FromONNX(path)
	if err != nil {
		return Model{}, err
	}
	if of.MaxContext > 0 && window > of.MaxContext {
		return Model{}, fault.New(fault.Usage, "use a smaller context",
			"context %d exceeds the maximum of %d of %s (%s)", window, of.MaxContext, typed, of.LongestIn)
	}
	sum, err := hashOfONNX(ctx, path)
	if err != nil {
		return Model{}, err
	}
	file := filepath.Join(o.Dir, filepath.FromSlash(o.File))
	if strings.EqualFold(filepath.Ext(typed), ".onnx") {
		typed = filepath.Join(filepath.Dir(typed), "..")
	}
	return Model{Path: file, Model: record.Model{Name: titled(typed) + "-" + o.Form, SHA256: sum, Format: ONNX,
		Architecture: of.Type, DType: o.DType, FileB: o.Bytes, WeightsB: o.Bytes, Parameters: of.Parameters,
		Context: cmp.Or(window, of.MaxContext), MaxContext: of.MaxContext, Layers: of.Layers, Heads: of.Heads,
		KVHeads: of.KVHeads, HeadDim: of.HeadDim, Hidden: of.Hidden, Vocab: of.Vocab}}, nil
}

// hashOfONNX hashes a model's file and its files of data, one after another.
func hashOfONNX(ctx context.Context, path string) (string, error) {
	o, err := onnx.Open(path)
	if err != nil {
		return "", err
	}
	var files []string
	for _, name := range append([]string{o.File}, o.Data...) {
		files = append(files, filepath.Join(o.Dir, filepath.FromSlash(name)))
	}
	return hashOfFiles(ctx, files)
}

func onnxFacts(ctx context.Context, path string) (Facts, error) {
	m, err := openONNX(ctx, path, path, 0)
	if err != nil {
		return Facts{}, err
	}
	o, err := onnx.Open(path)
	return Facts{Model: m.Model, model: m, BytesByType: o.Stored, Tokenizer: "tokenizer.json",
		KV: kvOf(2*int64(m.Layers)*int64(m.KVHeads)*int64(m.HeadDim), m.Context)}, err
}
