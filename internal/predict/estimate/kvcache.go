package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models/hfconfig"
)

// kvType returns the dtype of keys or values.
func (e *Estimate) kvType(given string) (dtype.DType, error) {
	name, own := strings.ToLower(given), e.Setup.Engine.KVTypes
	chosen := name != "" && name != "auto"
	if !chosen {
		if name = e.DTypes.Activations; e.runs(engine.GGML) {
			name = "f16"
		}
	}
	d, known := dtype.Named(name)
	if chosen && (!known || own != nil && !slices.Contains(own, d.Name)) {
		if own == nil {
			own = dtype.Caches()
		}
		return d, fault.New(fault.Usage, "choose "+strings.Join(own, ", "),
			"--kv-cache-dtype %s is not supported by %s", given, e.Setup.Engine.Name)
	}
	return d, nil
}

// The units, in tokens, in which engines reserve the KV cache.
const (
	webllmPage = 16
	llamaPad   = 256
	vllmBlock  = 16
)

func padded(n, to int64) int64 { return ceil(n, to) * to }

// slots returns the number of tokens that a group of layers reserves and uses, for one sequence.
func (e *Estimate) slots(c hfconfig.Cache) (reserved, used int64) {
	s := e.Setup
	context, tokens, window := int64(s.Context), e.Tokens, int64(c.Window)
	seen := tokens
	if window > 0 {
		seen = min(tokens, window)
	}
	switch s.Engine.Runtime {
	case engine.MLC:
		return (ceil(context, webllmPage) + 1) * webllmPage, tokens
	case engine.GGML:
		cells := padded(context, llamaPad)
		if window > 0 && windowed(e.Model.Type) {
			ubatch := min(int64(s.UBatch), cells)
			cells = min(cells, padded(window+ubatch, llamaPad))
			return cells, min(seen, cells)
		}
		return cells, tokens
	case engine.VLLM:
		return padded(seen, vllmBlock), seen
	}
	return seen, seen
}

// perLayer returns the bytes per token in one layer. Keys and values are separate rows.
func (e *Estimate) perLayer(c hfconfig.Cache, t, v dtype.DType) int64 {
	values, keys := c.Values, c.Keys
	if c.Expanded > 0 && e.runs(engine.Torch) {
		values, keys = c.Expanded, c.ExpandedKeys
	}
	return t.Size(1, keys) + v.Size(1, values-keys)
}

// cache predicts the KV cache: reserved, and used at the end of the text.
func (e *Estimate) cache() (reserved, used Component, err error) {
	m, s := e.Model, e.Setup
	e.DTypes.Activations = e.activationType()
	t, err := e.kvType(s.KVDType)
	if err != nil {
		return reserved, used, err
	}
	e.DTypes.KVCache = t.Name
	v := t
	if s.ValueType != "" {
		v, err = e.kvType(s.ValueType)
	}
	if err != nil || len(m.Caches) == 0 {
		return reserved, used, err
	}
	var room, filled float64
	extra, devices := int64(0), int64(s.TensorParallel)
	for _, c := range m.Caches {
		one := e.perLayer(c, t, v) * int64(c.Layers)
		e.PerToken += one
		r, u := e.slots(c)
		room += float64(one) * float64(r) * float64(e.Sequences)
		filled += float64(one) * float64(u) * float64(e.Sequences)
		if heads := int64(c.Heads); devices > 1 && e.runs(engine.VLLM, engine.Torch) {
			copies := one * (devices - 1) // a latent: each device has all of it
			if heads > 0 {
				copies = one*ceil(heads, devices)*devices/heads - one
			}
			extra += copies * u * int64(e.Sequences)
		}
	}
	if room > 1<<54 {
		return reserved, used, fault.New(fault.Usage, "lower --context, --batch-size or --concurrency",
			"KV cache: %d tokens in each of %d sequences would need %.0f bytes", s.Context, e.Sequences, room)
	}
	how, usedHow := e.cacheMethod()
	if extra > 0 {
		copies := fmt.Sprintf("; includes %.2f GiB of copies, because %d devices cannot share it",
			float64(extra)/gib, devices)
		how, usedHow = how+copies, usedHow+copies
	}
	trust := cmp.Or(m.CacheTrust, m.Trust)
	return exact(KVReserved, int64(room)+extra, t.Name, how, trust),
		exact(KVUsed, int64(filled)+extra, t.Name, usedHow, trust), nil
}

// activationType returns the dtype in which the engine computes.
func (e *Estimate) activationType() string {
	switch {
	case e.runs(engine.GGML):
		return "f32"
	case e.runs(engine.MLC):
		name := strings.ToLower(e.Setup.Quantization)
		if name == "" && e.Model.Packaged() {
			name = e.Model.DType
		}
		if f, ok := mlcFormat(name); ok {
			return f.plain.Name
		}
		if e.ofGGUF() && e.Setup.DType == "" {
			return "f32"
		}
	case e.runs(engine.Torch) && e.ofGGUF() && e.Setup.DType == "":
		return "f32"
	}
	if e.plain.Bits() < 16 {
		return "bf16"
	}
	return e.plain.Name
}

func (e *Estimate) cacheMethod() (reserved, used string) {
	s := e.Setup
	per := fmt.Sprintf("%d bytes per token for keys and values of all layers", e.PerToken)
	windowed := func(c hfconfig.Cache) bool { return c.Window > 0 }
	if i := slices.IndexFunc(e.Model.Caches, windowed); i >= 0 {
		per += fmt.Sprintf(", some layers with a window of %d tokens", e.Model.Caches[i].Window)
	}
	sequences := words.Count(e.Sequences, "sequence")
	used = fmt.Sprintf("%s × %d tokens × %s", per, e.Tokens, sequences)
	switch s.Engine.Runtime {
	case engine.MLC:
		return per + fmt.Sprintf(" × the context window in pages of %d tokens, rounded up, and one page more; reserved at load", webllmPage), used
	case engine.GGML:
		return per + fmt.Sprintf(" × the context window, rounded up to a multiple of %d tokens, × %s; reserved at load", llamaPad, sequences), used
	case engine.VLLM:
		return per + fmt.Sprintf(" in blocks of %d tokens × %s", vllmBlock, sequences), used
	}
	return used + "; grows with the text", used
}
