package llamacpp

import (
	"cmp"
	"strconv"

	"llmparity/internal/engine"
	"llmparity/native/logs"
)

var (
	_ engine.Settled = (*Engine)(nil)
	_ engine.Settled = (*OneShot)(nil)
)

// Settings returns the configured settings; what llama.cpp chooses is not known yet.
func (l *Engine) Settings(m engine.Model) map[string]string {
	s := l.config.settings(m)
	l.config.parallel(s)
	return s
}

// Settings returns the configured settings.
func (o *OneShot) Settings(m engine.Model) map[string]string { return o.config.settings(m) }

func (c Config) settings(m engine.Model) map[string]string {
	s := c.policy(m, logs.Load{Offloaded: -1, Batch: c.Batch, UBatch: c.UBatch})
	delete(s, "repacking")           // known after the load
	if c.Batch > 0 || c.UBatch > 0 { // cannot compute more at a time than is submitted
		s["ubatch"] = strconv.Itoa(min(cmp.Or(c.Batch, usualBatch), cmp.Or(c.UBatch, usualUBatch)))
	}
	if m.Context > 0 {
		s["context"] = strconv.Itoa(m.Context)
	}
	return s
}

// parallel adds the number of slots if there are several; reserved memory is multiplied by it.
func (c Config) parallel(policy map[string]string) {
	if c.slots() > 1 {
		policy["parallel"] = strconv.Itoa(c.slots())
	}
}

// llama.cpp's defaults.
const (
	usualBatch  = 2048
	usualUBatch = 512
)

// repacking reports whether weights were repacked for the processor into memory of their own.
func repacking(l logs.Load) string {
	switch {
	case len(l.Buffers["model"]) == 0:
		return "unknown"
	case l.Buffers["model"]["CPU_REPACK"] > 0:
		return "on"
	}
	return "off"
}
