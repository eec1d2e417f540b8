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

// Settings are those of the configuration; what llama.cpp chooses itself is left to it.
func (l *Engine) Settings(m engine.Model) map[string]string {
	s := l.config.settings(m)
	l.config.parallel(s)
	return s
}

// Settings are those of the configuration.
func (o *OneShot) Settings(m engine.Model) map[string]string { return o.config.settings(m) }

func (c Config) settings(m engine.Model) map[string]string {
	s := c.policy(m, logs.Load{Offloaded: -1, Batch: c.Batch, UBatch: c.UBatch})
	delete(s, "repacking")           // known once it is loaded
	if c.Batch > 0 || c.UBatch > 0 { // no more are computed at a time than are handed over
		s["ubatch"] = strconv.Itoa(min(cmp.Or(c.Batch, usualBatch), cmp.Or(c.UBatch, usualUBatch)))
	}
	if m.Context > 0 {
		s["context"] = strconv.Itoa(m.Context)
	}
	return s
}

// parallel says how many slots a server has, where it is not one: what is reserved is as many times as much.
func (c Config) parallel(policy map[string]string) {
	if c.slots() > 1 {
		policy["parallel"] = strconv.Itoa(c.slots())
	}
}

// What llama.cpp takes, and computes, at a time where nothing is said.
const (
	usualBatch  = 2048
	usualUBatch = 512
)

// repacking tells whether weights were laid out anew for the processor, in memory of their own.
func repacking(l logs.Load) string {
	switch {
	case len(l.Buffers["model"]) == 0:
		return "not told"
	case l.Buffers["model"]["CPU_REPACK"] > 0:
		return "on"
	}
	return "off"
}
