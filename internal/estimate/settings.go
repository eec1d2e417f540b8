package estimate

import (
	"fmt"
	"strconv"
	"strings"

	"llmparity/internal/engine"
)

// Take takes what an engine says of itself before it is opened, under the names that its policy has in records; what
// isn't known of here is left alone. This and Settings are the one place where those names are turned into a setup and
// back.
func (s *Setup) Take(settings map[string]string) {
	for name, to := range map[string]*int{"context": &s.Context, "ubatch": &s.UBatch, "prefill_chunk": &s.PrefillChunk,
		"parallel": &s.Concurrency, "gpu_layers": &s.GPULayers} {
		first, _, _ := strings.Cut(settings[name], " ") // as in 3 of 4
		if n, err := strconv.Atoi(first); err == nil && n > 0 {
			*to = n
		}
	}
	s.KVDType, s.ValueType = settings["kv_dtype"], ""
	if keys, values, both := strings.Cut(s.KVDType, ", V "); both {
		s.KVDType, s.ValueType = strings.TrimPrefix(keys, "K "), values
	}
	s.NoFlash = settings["flash_attention"] == "off"
	s.NoMmap = settings["mmap"] == "off"
	if settings["repacking"] == "off" {
		s.Repacks = nil
	}
	s.OnGPU = s.OnGPU || settings["gpu"] == "allowed" // where it puts what is then known once it has
}

// Settings are what was taken for granted, under the names that an engine's policy has in records.
func (e Estimate) Settings() map[string]string {
	s := e.Setup
	kv := e.DTypes.KVCache
	if v := s.ValueType; v != "" && v != kv {
		kv = fmt.Sprintf("K %s, V %s", kv, v)
	}
	out := map[string]string{"context": strconv.Itoa(s.Context), "weights_dtype": e.DTypes.Weights, "kv_dtype": kv,
		"activations_dtype": e.DTypes.Activations}
	switch s.Engine.Runtime {
	case engine.MLC:
		out["prefill_chunk"] = strconv.Itoa(s.PrefillChunk)
	case engine.GGML:
		out["ubatch"] = strconv.Itoa(s.UBatch)
		out["flash_attention"] = map[bool]string{false: "on", true: "off"}[s.NoFlash]
		out["mmap"] = map[bool]string{false: "on", true: "off"}[s.NoMmap]
		out["gpu_layers"] = strconv.Itoa(s.GPULayers)
		out["repacking"] = "off"
		if n, _ := e.repacked(); n > 0 {
			out["repacking"] = "on"
		}
		if s.Engine.Itself || s.Concurrency > 1 {
			out["parallel"] = strconv.Itoa(s.Concurrency)
		}
	}
	for name, value := range out {
		if value == "" {
			delete(out, name)
		}
	}
	return out
}
