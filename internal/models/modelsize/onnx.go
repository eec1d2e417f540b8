package modelsize

import (
	"cmp"

	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/onnx"
)

// FromONNX reads the config.json of an ONNX model, and the sizes of its weights.
func FromONNX(path string) (Model, error) {
	o, err := onnx.Open(path)
	if err != nil {
		return Model{}, err
	}
	c, err := hfconfig.Open(o.Dir)
	if err != nil {
		return Model{}, err
	}
	m := FromConfig(c)
	m.Source, m.Only, m.Stored, m.DType = onnxFormat, onnxFormat, o.Stored, cmp.Or(o.DType, c.DType)
	return m, nil
}

// onnxFormat is the name of ONNX among formats.
const onnxFormat = "onnx"
