package browser

import (
	"context"
	"maps"
	"strconv"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

var _ engine.Settled = (*WebLLM)(nil)

// Settings are those of the package that was prepared for the model; nothing before.
func (w *WebLLM) Settings(m engine.Model) map[string]string {
	p, ok := w.Prepared(m)
	if !ok {
		return nil
	}
	s := maps.Clone(p.Policy)
	if s == nil {
		s = map[string]string{}
	}
	s["context"], s["prefill_chunk"] = strconv.Itoa(p.Context), strconv.Itoa(p.PrefillChunk)
	return s
}

// Prepared is the package that was prepared for a model; ok tells whether there is one.
func (w *WebLLM) Prepared(m engine.Model) (p Package, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok = w.packages[modelKey{m.Path, m.SHA256, m.Context}]
	return p, ok
}

// Software tells whether the adapter computes on the CPU: as the browser told it, or, where it was not asked yet, as it
// is expected.
func (w *WebLLM) Software() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.device != nil {
		return w.device.Class == record.SoftwareAdapter
	}
	return w.config.Launch.Attach == "" && w.config.Adapter.Software()
}

// Files are the package that was prepared for a model, and its library, which the page's server hands out.
func (w *WebLLM) Files(m engine.Model) []string {
	if p, ok := w.Prepared(m); ok {
		return []string{p.Dir, p.Library.Path}
	}
	return nil
}

// Memory is how WebLLM has models in memory. A browser with its page was seen to hold from 190 to 370 MiB before a
// model is in it.
var Memory = &engine.Memory{Name: Name, Title: "WebLLM", Runtime: engine.MLC, Before: 370 << 20, FourBits: "q4f32_1"}

// Held goes by the package that was prepared, and before that by what would be made of a GGUF.
func (w *WebLLM) Held(m engine.Model) engine.Held {
	out := engine.Held{As: Memory, Path: m.Path, OnGPU: !w.Software(),
		Device: func(ctx context.Context) (record.Device, error) { return w.Device(ctx, quiet) }}
	if p, ok := w.Prepared(m); ok {
		out.Path, out.Library = p.Dir, p.Library.Path
	} else if m.Format == "gguf" {
		out.DType, out.PrefillChunk = w.config.DType, min(w.config.PrefillChunk, m.Context)
	}
	return out
}
