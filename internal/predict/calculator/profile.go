package calculator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
)

// Profile is a measured memory profile, in GiB. NaN is a missing value.
type Profile struct {
	Model      string
	Engine     string
	Weights    float64
	KV         float64
	KVUsed     float64
	Activation float64
	Overhead   float64
	MultiGPU   float64
	Total      float64
	Unit       string                   // the unit that the file names; "": none
	Arithmetic map[string]record.Origin // components that were not measured: file size, calculated
	Notes      []string
}

const maxProfile = 64 << 20

// OpenProfile reads a memory profile of schema 2.0, or an older one with memory_breakdown.total_gb.
func OpenProfile(path string) (Profile, error) {
	text, err := regular.Read(path, maxProfile)
	if err != nil {
		return Profile{}, fault.Wrap(fault.BadRecord, err, wantedProfile, "cannot read profile %s", path)
	}
	return ParseProfile(path, text)
}

const wantedProfile = "name a profile.json, as written by `llmparity report DIR --profile`"

// object is a part of a profile, with its path. All parts share the first mistake.
type object struct {
	path    string
	fields  map[string]any
	mistake *error
}

func (o object) wrong(format string, args ...any) {
	if *o.mistake == nil {
		*o.mistake = fmt.Errorf(format, args...)
	}
}

func (o object) in(name string) object {
	fields, ok := o.fields[name].(map[string]any)
	if !ok && o.fields[name] != nil {
		o.wrong("%s%s is not an object", o.path, name)
	}
	return object{o.path + name + ".", fields, o.mistake}
}

// number reads the first field that exists; NaN if none does. Only differences may be negative.
func (o object) number(negative bool, names ...string) float64 {
	for _, name := range names {
		if v := o.fields[name]; v != nil {
			n, ok := v.(float64)
			if !ok || math.Abs(n) > 1<<30 || n < 0 && !negative {
				o.wrong("%s%s is %v; want a number of gigabytes", o.path, name, v)
			}
			return n
		}
	}
	return math.NaN()
}

func (o object) text(names ...string) string {
	for _, name := range names {
		if s, ok := o.fields[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// ParseProfile parses a profile.
func ParseProfile(file string, text []byte) (Profile, error) {
	var mistake error
	root := object{mistake: &mistake}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&root.fields); err != nil || root.fields == nil {
		root.wrong("not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		root.wrong("text after the end of the JSON object")
	}
	if v, _, _ := strings.Cut(root.text("schema_version"), "."); v != "" && v != "1" && v != "2" {
		root.wrong("schema_version %s is unknown; want 1 or 2", root.text("schema_version"))
	}
	p := profile(root)
	if math.IsNaN(p.Weights) && math.IsNaN(p.KV) && math.IsNaN(p.Activation) && math.IsNaN(p.Overhead) &&
		math.IsNaN(p.Total) {
		root.wrong("memory_breakdown is missing or has no measured sizes")
	}
	if mistake != nil {
		return p, fault.New(fault.BadRecord, wantedProfile, "profile %s: %v", file, mistake)
	}
	return p, nil
}

func profile(root object) Profile {
	b := root.in("memory_breakdown")
	p := Profile{
		Model: root.in("model_info").text("name", "model_name"), Engine: root.in("engine_metadata").text("engine_type"),
		Weights: b.number(false, "model_weights_gb"), KV: b.number(false, "kv_cache_gb", "kv_cache_reserved_gb"),
		KVUsed: b.number(false, "kv_cache_used_gb"), Activation: b.number(true, "activations_gb"),
		Overhead: b.number(true, "framework_overhead_gb"), MultiGPU: b.number(true, "multi_gpu_overhead_gb"),
		Total: b.number(false, "total_measured_gb", "total_gb"), Unit: root.in("metadata").in("units").text("gb"),
		Arithmetic: arithmetic(b.in("methods")),
	}
	if math.IsNaN(p.MultiGPU) {
		p.MultiGPU = root.in("gpu_info").number(true, "multi_gpu_overhead_gb")
	}
	if base := b.number(true, "baseline_gb"); base > 0 && p.Total > base {
		p.Total -= base
		p.Notes = append(p.Notes, fmt.Sprintf(
			"the total is total_measured_gb less baseline_gb (%.3g), the memory before the load", base))
	}
	if math.IsNaN(p.Total) {
		if p.Total = root.in("memory_measurements").number(true, "memory_increase_gb"); !math.IsNaN(p.Total) {
			p.Notes = append(p.Notes, "the total is memory_increase_gb: baseline to peak")
		}
	}
	return p
}

// arithmetic returns the components that the profile took from a file or a formula, by its methods.
func arithmetic(methods object) map[string]record.Origin {
	out := map[string]record.Origin{}
	for key, name := range map[string]string{"weights": estimate.Weights, "kv_cache": estimate.KVReserved,
		"activations": estimate.Activation} {
		switch methods.text(key) {
		case "tensors":
			out[name] = record.OriginFileSize
		case "formula":
			out[name] = record.OriginCalculated
		}
	}
	return out
}
