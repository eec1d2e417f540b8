package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
)

// Take reads the settings that an engine reports before it is opened, under the names that records use. Unknown
// settings are ignored. Take and Settings are inverse to each other.
func (s *Setup) Take(settings map[string]string) {
	s.Context = cmp.Or(number(settings["context"]), s.Context)
	s.KVDType, s.ValueType = settings["kv_dtype"], ""
	if keys, values, both := strings.Cut(s.KVDType, ", V "); both {
		s.KVDType, s.ValueType = strings.TrimPrefix(keys, "K "), values
	}
	s.OnGPU = s.OnGPU || settings["gpu"] == "allowed" // the number of layers is known only after the load
	if s.Engine == nil {
		return
	}
	r := runtimeOf(s.Engine)
	for _, o := range r.settings {
		o.take(s, settings)
	}
	if r.take != nil {
		r.take(s, settings)
	}
}

// number reads a number above 0, such as "3 of 4"; 0: it is none.
func number(text string) int {
	first, _, _ := strings.Cut(text, " ")
	if n, err := strconv.Atoi(first); err == nil {
		return max(n, 0)
	}
	return 0
}

// Settings returns the assumed settings under the names that records use.
func (e Estimate) Settings() map[string]string {
	s := e.Setup
	kv := e.DTypes.KVCache
	if v := s.ValueType; v != "" && v != kv {
		kv = fmt.Sprintf("K %s, V %s", kv, v)
	}
	out := map[string]string{"context": strconv.Itoa(s.Context), "weights_dtype": e.DTypes.Weights, "kv_dtype": kv,
		"activations_dtype": e.DTypes.Activations}
	r := e.runtime()
	for _, o := range r.settings {
		if o.Key != "" {
			out[o.Key] = o.text(s)
		}
	}
	if r.tell != nil {
		r.tell(&e, out)
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// Started fills in what a run starts the engine with, so that an estimate without flags is of the same settings. given
// reports whether a user gave a flag.
func (s *Setup) Started(given func(flag string) bool) {
	if s.Engine.Starts == nil {
		return
	}
	starts := s.Engine.Starts(engine.Settings{DType: dtype.Canonical(s.DType), KVDType: dtype.Canonical(s.KVDType)})
	if s.KVDType == "" {
		s.KVDType = starts["kv_dtype"]
	}
	for _, o := range runtimeOf(s.Engine).settings {
		if o.Flag != "" && !given(o.Flag) {
			o.take(s, starts)
		}
	}
}
