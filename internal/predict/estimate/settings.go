package estimate

import (
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
	s.takeNumbers(settings, map[string]*int{"context": &s.Context})
	s.KVDType, s.ValueType = settings["kv_dtype"], ""
	if keys, values, both := strings.Cut(s.KVDType, ", V "); both {
		s.KVDType, s.ValueType = strings.TrimPrefix(keys, "K "), values
	}
	s.OnGPU = s.OnGPU || settings["gpu"] == "allowed" // the number of layers is known only after the load
	if s.Engine != nil {
		runtimeOf(s.Engine).take(s, settings)
	}
}

// takeNumbers reads numbers, such as "3 of 4".
func (s *Setup) takeNumbers(settings map[string]string, to map[string]*int) {
	for name, to := range to {
		first, _, _ := strings.Cut(settings[name], " ")
		if n, err := strconv.Atoi(first); err == nil && n > 0 {
			*to = n
		}
	}
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
	e.runtime().settings(&e, out)
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// Started fills in what a run starts the engine with, so that an estimate without flags is of the same settings.
// noFlash reports whether NoFlash was given.
func (s *Setup) Started(noFlash bool) {
	if s.Engine.Starts == nil {
		return
	}
	starts := s.Engine.Starts(engine.Settings{DType: dtype.Canonical(s.DType), KVDType: dtype.Canonical(s.KVDType)})
	if s.KVDType == "" {
		s.KVDType = starts["kv_dtype"]
	}
	if !noFlash {
		s.NoFlash = starts["flash_attention"] == "off"
	}
}
