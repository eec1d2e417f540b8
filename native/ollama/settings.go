package ollama

import (
	"strconv"

	"llmparity/internal/engine"
)

var _ engine.Settled = (*Ollama)(nil)

// Settings returns what is requested of a server that we start. Those of a running server are known after the load.
func (o *Ollama) Settings(m engine.Model) map[string]string {
	if o.config.URL != "" {
		return map[string]string{"weights_dtype": m.DType}
	}
	s := map[string]string{"weights_dtype": m.DType, "kv_dtype": o.config.kvType(),
		"parallel": strconv.Itoa(o.config.slots()), "flash_attention": "off", "mmap": "off"}
	if o.config.kvType() != "f16" {
		s["flash_attention"] = "on" // a quantised cache needs it
	}
	if o.config.GPU {
		s["gpu"] = "allowed"
	}
	if m.Context > 0 {
		s["context"] = strconv.Itoa(m.Context)
	}
	return s
}
