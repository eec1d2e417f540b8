package estimate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/regular"
)

// Profile is what was measured, in GiB, as a memory profile says it; NaN is what it doesn't say.
type Profile struct {
	File       string
	Model      string
	Engine     string
	Weights    float64
	KV         float64
	KVUsed     float64
	Activation float64
	Overhead   float64
	MultiGPU   float64
	Total      float64
	Unit       string // what the file says of its gigabytes; "" where it says nothing
	Confidence map[string]string
	Arithmetic map[string]record.Origin // of components that nobody measured: file size, calculated
	Notes      []string
}

const maxProfile = 64 << 20

// OpenProfile reads a memory profile: one of schema 2.0, or an older one that has memory_breakdown with total_gb in it.
func OpenProfile(path string) (Profile, error) {
	const do = "name a profile.json, as `llmparity report DIR --profile` writes it"
	text, err := regular.Read(path, maxProfile)
	if err != nil {
		return Profile{}, fault.Wrap(fault.BadRecord, err, do, "profile %s can't be read", path)
	}
	return ParseProfile(path, text)
}

// object is a part of a profile, with where it lies in it.
type object struct {
	file, path string
	fields     map[string]any
}

func (o object) bad(format string, args ...any) error {
	return fault.New(fault.BadRecord, "name a profile.json, as `llmparity report DIR --profile` writes it",
		"profile %s: %s", o.file, fmt.Sprintf(format, args...))
}

func (o object) in(name string) (object, error) {
	v, ok := o.fields[name]
	if !ok || v == nil {
		return object{file: o.file, path: o.path + name + "."}, nil
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return object{}, o.bad("%s%s is no object", o.path, name)
	}
	return object{o.file, o.path + name + ".", fields}, nil
}

// number reads the first that is there; NaN where none is. Below zero only what is found by difference may be.
func (o object) number(negative bool, names ...string) (float64, error) {
	for _, name := range names {
		v, ok := o.fields[name]
		if !ok || v == nil {
			continue
		}
		n, ok := v.(float64)
		if !ok || math.Abs(n) > 1<<30 || n < 0 && !negative {
			return 0, o.bad("%s%s is %v; a number of gigabytes is right", o.path, name, v)
		}
		return n, nil
	}
	return math.NaN(), nil
}

func (o object) text(names ...string) string {
	for _, name := range names {
		if s, ok := o.fields[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// ParseProfile reads a profile's text.
func ParseProfile(file string, text []byte) (Profile, error) {
	root := object{file: file}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&root.fields); err != nil || root.fields == nil {
		return Profile{}, root.bad("it is not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Profile{}, root.bad("there is more behind its end")
	}
	if v, _, _ := strings.Cut(root.text("schema_version"), "."); v != "" && v != "1" && v != "2" {
		return Profile{}, root.bad("schema_version %s is not known; 1 and 2 are", root.text("schema_version"))
	}
	p := Profile{File: file, Confidence: map[string]string{}}
	b, err := root.in("memory_breakdown")
	if err != nil {
		return p, err
	}
	memory, err := root.in("memory_measurements")
	if err != nil {
		return p, err
	}
	for _, part := range []struct {
		to       *float64
		negative bool
		names    []string
	}{
		{&p.Weights, false, []string{"model_weights_gb"}},
		{&p.KV, false, []string{"kv_cache_gb", "kv_cache_reserved_gb"}},
		{&p.KVUsed, false, []string{"kv_cache_used_gb"}},
		{&p.Activation, true, []string{"activations_gb"}},
		{&p.Overhead, true, []string{"framework_overhead_gb"}},
		{&p.Total, false, []string{"total_measured_gb", "total_gb"}},
	} {
		if *part.to, err = b.number(part.negative, part.names...); err != nil {
			return p, err
		}
	}
	if err := p.around(root, b, memory); err != nil {
		return p, err
	}
	if math.IsNaN(p.Weights) && math.IsNaN(p.KV) && math.IsNaN(p.Activation) && math.IsNaN(p.Overhead) &&
		math.IsNaN(p.Total) {
		return p, root.bad("memory_breakdown is missing, or says nothing of what was measured")
	}
	return p, nil
}

// arithmetic names the components that a profile has from a file or a formula, by its methods: older ones have no
// origins.
func arithmetic(b object) (map[string]record.Origin, error) {
	methods, err := b.in("methods")
	if err != nil {
		return nil, err
	}
	out := map[string]record.Origin{}
	for key, name := range map[string]string{"weights": Weights, "kv_cache": KVReserved, "activations": Activation} {
		switch methods.text(key) {
		case "tensors":
			out[name] = record.OriginFileSize
		case "formula":
			out[name] = record.OriginCalculated
		}
	}
	return out, nil
}

// around reads what stands beside the breakdown.
func (p *Profile) around(root, b, memory object) (err error) {
	gpu, err := root.in("gpu_info")
	if err != nil {
		return err
	}
	if p.MultiGPU, err = b.number(true, "multi_gpu_overhead_gb"); err == nil && math.IsNaN(p.MultiGPU) {
		p.MultiGPU, err = gpu.number(true, "multi_gpu_overhead_gb")
	}
	if err != nil {
		return err
	}
	if base, err := b.number(true, "baseline_gb"); err != nil {
		return err
	} else if base > 0 && p.Total > base {
		p.Total -= base
		p.Notes = append(p.Notes, fmt.Sprintf(
			"the total is total_measured_gb less baseline_gb (%.3g), what the engine holds without a model", base))
	}
	if math.IsNaN(p.Total) {
		if p.Total, err = memory.number(true, "memory_increase_gb"); err != nil {
			return err
		}
		if !math.IsNaN(p.Total) {
			p.Notes = append(p.Notes, "the total is memory_increase_gb, from baseline to peak")
		}
	}
	levels, err := b.in("confidence_levels")
	if err != nil {
		return err
	}
	for name := range levels.fields {
		p.Confidence[name] = levels.text(name)
	}
	if p.Arithmetic, err = arithmetic(b); err != nil {
		return err
	}
	meta, err := root.in("metadata")
	if err != nil {
		return err
	}
	units, err := meta.in("units")
	if err != nil {
		return err
	}
	p.Unit = units.text("gb")
	model, err := root.in("model_info")
	if err != nil {
		return err
	}
	p.Model = model.text("name", "model_name")
	engine, err := root.in("engine_metadata")
	p.Engine = engine.text("engine_type")
	return err
}
