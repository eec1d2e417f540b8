package gguf

import "slices"

// AsFloat32 is metadata for values that are written as float32: without what is said of the quantisation and of the
// file's own layout.
func AsFloat32(metadata []Entry) []Entry {
	out := slices.DeleteFunc(slices.Clone(metadata), func(e Entry) bool {
		return e.Key == "general.quantization_version" || e.Key == "general.alignment"
	})
	for i, e := range out {
		if e.Key == "general.file_type" {
			out[i].Value = uint32(0) // all F32
		}
	}
	return out
}
