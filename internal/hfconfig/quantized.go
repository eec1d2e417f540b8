package hfconfig

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/fault"
)

// Quantized is how a config says that the published weights are stored.
type Quantized struct {
	Method    string // awq, gptq, fp8, bitsandbytes-4bit, bitsandbytes-8bit, mxfp4, nvfp4, int8, compressed-tensors
	Bits      int
	Group     int    // how many values of a row share a scale; 0: a whole row
	Block     [2]int // of rows and columns that share a scale, in fp8
	Symmetric bool   // no zero points
	Double    bool   // the scales are quantised too

	kept          []pattern // modules that stay as they were
	notUnderstood []string  // patterns of such modules that can't be read
}

// quantized reads quantization_config; nil where there is none.
func (r *reader) quantized() *Quantized {
	raw, ok := r.get("quantization_config", "compression_config")
	if !ok {
		return nil
	}
	fields, err := object(raw)
	if err != nil {
		r.fail(bad(r.file, "an object is right", "%squantization_config is %s", r.prefix, brief(raw)))
		return nil
	}
	c := &reader{file: r.file, prefix: r.prefix + "quantization_config.", family: r.family, fields: fields}
	q := c.method()
	for _, name := range []string{"modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers",
		"exclude_modules"} {
		for _, item := range c.list(name) {
			var module string
			if json.Unmarshal(item, &module) != nil || module == "" {
				continue
			}
			p, err := patternOf(module)
			if err != nil {
				q.notUnderstood = append(q.notUnderstood, module)
				continue
			}
			q.kept = append(q.kept, p)
		}
	}
	r.fail(c.err)
	return q
}

func (r *reader) method() *Quantized {
	q := &Quantized{Method: strings.ToLower(r.text("quant_method"))}
	bits := func(def int) int { return r.sizeOr(def, "bits", "w_bit") }
	group := func(def int) int {
		if raw, ok := r.get("group_size", "q_group_size"); ok && string(raw) == "-1" {
			return 0
		}
		return r.count(def, "group_size", "q_group_size")
	}
	switch q.Method {
	case "awq":
		q.Bits, q.Group, q.Symmetric = bits(4), group(128), !r.flag(true, "zero_point")
	case "gptq":
		q.Bits, q.Group = bits(4), group(128)
	case "bitsandbytes":
		q.Method, q.Bits = "bitsandbytes-8bit", 8
		if r.flag(false, "load_in_4bit", "_load_in_4bit") {
			q.Method, q.Bits, q.Group, q.Double = "bitsandbytes-4bit", 4, 64, r.flag(false, "bnb_4bit_use_double_quant")
		}
	case "fp8", "fbgemm_fp8":
		q.Bits = 8
		for i, raw := range r.list("weight_block_size") {
			if i < 2 {
				q.Block[i] = r.size("weight_block_size", raw, 1)
			}
		}
		q.Method = "fp8"
	case "mxfp4":
		q.Bits, q.Group = 4, 32
	case "modelopt", "modelopt_fp4":
		r.modelopt(q)
	case "compressed-tensors":
		r.compressed(q)
	default:
		r.fail(unknownMethod(r.file, r.prefix+"quant_method", q.Method))
	}
	if q.Bits < 1 || q.Bits > 16 {
		r.fail(bad(r.file, "1 to 16 are right", "%sbits is %d", r.prefix, q.Bits))
	}
	return q
}

// modelopt reads what NVIDIA's tool says, which once had it in an object within.
func (r *reader) modelopt(q *Quantized) {
	algorithm := r.text("quant_algo")
	if algorithm == "" {
		algorithm = r.sub("quantization").text("quant_algo")
	}
	switch a := strings.ToUpper(algorithm); {
	case strings.HasPrefix(a, "NVFP4"), a == "" && q.Method == "modelopt_fp4":
		q.Method, q.Bits, q.Group = "nvfp4", 4, 16
	case strings.HasPrefix(a, "FP8"):
		q.Method, q.Bits = "fp8", 8
	default:
		q.Bits = 8
		r.fail(unknownMethod(r.file, r.prefix+"quant_algo", algorithm))
	}
}

func unknownMethod(file, field, method string) error {
	return fault.New(fault.UnknownArch, "say with --quantization how the weights are stored, as in awq, gptq, fp8 or bf16",
		"%s: %s %q is not known", file, field, method)
}

// compressed reads the first group of layers, which nearly always is the only one.
func (r *reader) compressed(q *Quantized) {
	groups := r.sub("config_groups")
	names := slices.Sorted(maps.Keys(groups.fields))
	if len(names) == 0 {
		r.fail(groups.err)
		r.fail(bad(r.file, "it has one in published models", "%sconfig_groups says nothing", r.prefix))
		return
	}
	w := groups.sub(names[0]).sub("weights")
	q.Bits, q.Symmetric = w.sizeOr(8, "num_bits"), w.flag(true, "symmetric")
	if raw, ok := w.get("group_size"); ok && string(raw) != "-1" {
		q.Group = w.count(0, "group_size")
	}
	q.Method = "int8"
	if w.text("type") == "float" {
		q.Method = "fp8"
	}
	switch float := w.text("type") == "float"; {
	case float && q.Bits == 4 && q.Group == 32:
		q.Method = "mxfp4"
	case float && q.Bits == 4:
		q.Method = "nvfp4"
	case q.Bits < 8:
		q.Method = "compressed-tensors"
	}
	r.fail(groups.err)
	r.fail(w.err)
}
