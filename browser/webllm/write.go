package webllm

import (
	"context"
	"path/filepath"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
)

// Write writes a GGUF's package to a folder, with its library as lib.wasm.
func Write(ctx context.Context, m engine.Model, target string, c Config, s engine.Settings, say func(string)) error {
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	// The package may be for another machine, so float16 needs no adapter here. Kernels depend on the adapter, unless
	// they are chosen.
	of := s
	of.DType = F32
	t, err := New(c, of).Target(ctx, say)
	if err != nil {
		return err
	}
	// The library comes first: if it cannot be compiled, the package would be written in vain.
	options := Options(m.Context, s.DType, s.KVDType, c.weights())
	weights, err := mlc.Params(f, options)
	if err != nil {
		return err
	}
	if err := cache.Free(filepath.Dir(target), bytesOf(weights), "name another folder"); err != nil {
		return err
	}
	lib, err := Compile(ctx, s.Cache, f, options, c.variant(t), say)
	if err != nil {
		return err
	}
	options.Library = lib.Path
	return written(ctx, m, target, options, say)
}
