package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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

// stay is how long a model stays after a request: a number is one of seconds. 0: as long as it takes, or no duration,
// which the engine says.
func stay(text string) time.Duration {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// validate looks at a section that is there.
func (o *Ollama) validate(timeout time.Duration) error {
	if o == nil {
		return nil
	}
	keep := stay(o.KeepAlive)
	switch {
	case keep > 0 && keep < timeout:
		return fmt.Errorf("ollama.keep_alive: %s is less than the timeout of %s: the model might go within a launch; make it as long, or -1 for ever", o.KeepAlive, timeout)
	case o.KVType != "" && !slices.Contains(OllamaKVTypes(), o.KVType):
		return fmt.Errorf("ollama.kv_type: %q, use %s", o.KVType, strings.Join(OllamaKVTypes(), ", "))
	case o.URL != "" && o.KVType != "":
		return fmt.Errorf("ollama.kv_type: %s is for an Ollama that is started, and ollama.url names one that runs; leave one out", o.KVType)
	case o.URL != "" && o.GPU:
		return fmt.Errorf("ollama.gpu: an Ollama that runs already does as it likes; leave out gpu or url")
	}
	return nil
}
