package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Ollama is what a plan says of Ollama. What is empty is as the program takes it of itself.
type Ollama struct {
	URL       string `yaml:"url,omitempty"`        // of a server that runs already; empty: one is started
	KVType    string `yaml:"kv_type,omitempty"`    // of a server that is started: f16, q8_0, q4_0
	KeepAlive string `yaml:"keep_alive,omitempty"` // how long the model stays after a request, as in 10m; -1: for ever
	GPU       bool   `yaml:"gpu,omitempty"`        // a server that is started may use one
}

// OllamaKVTypes are the element types that Ollama's KV cache can have.
func OllamaKVTypes() []string { return []string{"f16", "q8_0", "q4_0"} }

// validate looks at a section that is there.
func (o *Ollama) validate() error {
	switch {
	case o == nil:
		return nil
	case o.KVType != "" && !slices.Contains(OllamaKVTypes(), o.KVType):
		return fmt.Errorf("ollama.kv_type: %q, use %s", o.KVType, strings.Join(OllamaKVTypes(), ", "))
	case o.URL != "" && o.KVType != "":
		return fmt.Errorf("ollama.kv_type: %s is for an Ollama that is started, and ollama.url names one that runs; leave one out", o.KVType)
	case o.URL != "" && o.GPU:
		return fmt.Errorf("ollama.gpu: an Ollama that runs already does as it likes; leave out gpu or url")
	}
	return nil
}
