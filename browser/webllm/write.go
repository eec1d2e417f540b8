package webllm

import (
	"context"

	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
)

// Write writes a GGUF's package, and its library as lib.wasm in the same folder.
func Write(ctx context.Context, m engine.Model, target string, c Config, s engine.Settings, say func(string)) error {
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	// A package may be made for another machine, so float16 needs no adapter here; what kernels it gets does, unless it
	// is said.
	of := s
	of.DType = F32
	t, err := New(c, of).Target(ctx, say)
	if err != nil {
		return err
	}
	// The library first: where its compiler is missing, no package is written in vain.
	options := Options(m.Context, s.DType)
	lib, err := Compile(ctx, s.Cache, f, options, c.variant(t), say)
	if err != nil {
		return err
	}
	options.Library, options.SHA256 = lib.Path, m.SHA256
	written, err := mlc.Write(ctx, m.Path, target, options)
	if err != nil {
		return err
	}
	for _, w := range written.Warnings {
		say(w)
	}
	return nil
}
