package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models/hfconfig"
)

// kvType returns the dtype of keys or values.
func (e *Estimate) kvType(given string) (dtype.DType, error) {
	name, own := strings.ToLower(given), e.Setup.Engine.KVTypes
	chosen := name != "" && name != "auto"
	if !chosen {
		name = cmp.Or(e.runtime().kv, e.DTypes.Activations)
	}
	d, known := dtype.Named(name)
	if chosen && (!known || own == nil && !d.Caches || own != nil && !slices.Contains(own, d.Name)) {
		if own == nil {
			own = dtype.Caches()
		}
		return d, fault.New(fault.Usage, "choose "+strings.Join(own, ", "),
			"--kv-cache-dtype %s is not supported by %s", given, e.Setup.Engine.Name)
	}
	return d, nil
}

// seen returns the tokens of a sequence that the last one attends to.
func (e *Estimate) seen(c hfconfig.Cache) int64 {
	if c.Window > 0 {
		return min(e.Tokens, int64(c.Window))
	}
	return e.Tokens
}

func padded(n, to int64) int64 { return ceil(n, to) * to }

// perLayer returns the bytes per token in one layer. Keys and values are separate rows.
func (e *Estimate) perLayer(c hfconfig.Cache, t, v dtype.DType) int64 {
	values, keys := c.Values, c.Keys
	if e.runtime().expands && c.Expanded > 0 {
		values, keys = c.Expanded, c.ExpandedKeys
	}
	return t.Size(1, keys) + v.Size(1, values-keys)
}

// keysAndValues predicts the KV cache: reserved, and used at the end of the text.
func (e *Estimate) keysAndValues() (reserved, used Component, err error) {
	m, s := e.Model, e.Setup
	r := e.runtime()
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
		held, seen := r.cache(e, c)
		room += float64(one) * float64(held) * float64(e.Sequences)
		filled += float64(one) * float64(seen) * float64(e.Sequences)
		if heads := int64(c.Heads); devices > 1 && !r.device.layers {
			copies := one * (devices - 1) // a latent: each device has all of it
			if heads > 0 {
				copies = one*ceil(heads, devices)*devices/heads - one
			}
			extra += copies * seen * int64(e.Sequences)
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

func (e *Estimate) cacheMethod() (reserved, used string) {
	per := fmt.Sprintf("%d bytes per token for keys and values of all layers", e.PerToken)
	windowed := func(c hfconfig.Cache) bool { return c.Window > 0 }
	if i := slices.IndexFunc(e.Model.Caches, windowed); i >= 0 {
		per += fmt.Sprintf(", some layers with a window of %d tokens", e.Model.Caches[i].Window)
	}
	sequences := words.Count(e.Sequences, "sequence")
	used = fmt.Sprintf("%s × %d tokens × %s", per, e.Tokens, sequences)
	how := cmp.Or(e.runtime().reserves, "%[2]s; grows with the text")
	return fmt.Sprintf(how, per, used, sequences), used
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
