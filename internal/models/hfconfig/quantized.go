package hfconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
)

// Quantized is the format of the published weights.
type Quantized struct {
	Method    string // awq, gptq, fp8, bitsandbytes-4bit, bitsandbytes-8bit, mxfp4, nvfp4, int8, compressed-tensors
	Bits      int
	Group     int    // values of a row that share a scale; 0: all of them
	Block     [2]int // rows and columns that share a scale, in fp8
	Symmetric bool   // no zero points
	Double    bool   // the scales are quantised too

	kept       []*regexp.Regexp // modules that are not quantised
	unreadable []string         // patterns of such modules that cannot be read
}

// keptLists are the fields with modules that are not quantised.
var keptLists = []string{"modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers",
	"exclude_modules"}

// quantized reads quantization_config; nil if there is none.
func (r *reader) quantized() *Quantized {
	name, _, ok := r.get("quantization_config", "compression_config")
	if !ok {
		return nil
	}
	c := r.sub(name)
	q := c.method()
	for _, name := range keptLists {
		for _, item := range c.list(name) {
			var module string
			if json.Unmarshal(item, &module) != nil || module == "" {
				continue
			}
			if re, err := pattern(module); err == nil {
				q.kept = append(q.kept, re)
			} else {
				q.unreadable = append(q.unreadable, module)
			}
		}
	}
	r.fail(c.err)
	return q
}

// pattern returns what matches an entry in a list of modules: a name, of the whole path or a part of it, in which * is
// a wildcard, or a regular expression after "re:".
func pattern(module string) (*regexp.Regexp, error) {
	if text, ok := strings.CutPrefix(module, "re:"); ok {
		return regexp.Compile("^(?:" + text + ")")
	}
	return regexp.Compile(`(?:^|\.)` + strings.ReplaceAll(regexp.QuoteMeta(module), `\*`, ".*") + `(?:\.|$)`)
}

// Kept returns how many copies of a weight are not quantised, in a model with so many layers.
func (q Quantized) Kept(w Weight, layers int) int64 {
	if len(q.kept) == 0 || !w.Linear || layers < 1 {
		return 0
	}
	name := strings.TrimSuffix(w.Name, ".weight")
	kept := 0
	for layer := range layers {
		if q.keeps(fmt.Sprintf("layers.%d.%s", layer, name)) ||
			q.keeps(fmt.Sprintf("layers.%d.%s", layer, strings.Replace(name, "shared_expert.", "shared_experts.", 1))) {
			kept++
		}
	}
	if w.Times <= int64(layers) { // at most one in a layer
		return min(int64(kept), w.Times)
	}
	return int64(float64(w.Times) * float64(kept) / float64(layers))
}

func (q Quantized) keeps(module string) bool {
	for _, prefix := range []string{"model.", "language_model.model.", "model.language_model."} {
		if slices.ContainsFunc(q.kept, func(re *regexp.Regexp) bool { return re.MatchString(prefix + module) }) {
			return true
		}
	}
	return false
}

func (r *reader) method() *Quantized {
	q := &Quantized{Method: strings.ToLower(r.text("quant_method"))}
	bits := func(def int) int { return r.sizeOr(def, "bits", "w_bit") }
	group := func(def int) int {
		if _, raw, ok := r.get("group_size", "q_group_size"); ok && string(raw) == "-1" {
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
		r.fail(bad(r.file, "correct it", "%sbits is %d, want 1 to 16", r.prefix, q.Bits))
	}
	return q
}

// modelopt reads the format of NVIDIA's tool, whose older versions have it in an object.
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
	return fault.New(fault.UnknownArch, "name the format with --quantization, such as awq, gptq, fp8 or bf16",
		"%s: %s %q is unknown", file, field, method)
}

// compressed reads the first group of layers, which is nearly always the only one.
func (r *reader) compressed(q *Quantized) {
	groups := r.sub("config_groups")
	names := slices.Sorted(maps.Keys(groups.fields))
	if len(names) == 0 {
		r.fail(groups.err)
		r.fail(bad(r.file, "add a group", "%sconfig_groups is empty", r.prefix))
		return
	}
	w := groups.sub(names[0]).sub("weights")
	q.Bits, q.Symmetric = w.sizeOr(8, "num_bits"), w.flag(true, "symmetric")
	if _, raw, ok := w.get("group_size"); ok && string(raw) != "-1" {
		q.Group = w.count(0, "group_size")
	}
	switch float := w.text("type") == "float"; {
	case float && q.Bits == 4 && q.Group == 32:
		q.Method = "mxfp4"
	case float && q.Bits == 4:
		q.Method = "nvfp4"
	case q.Bits < 8:
		q.Method = "compressed-tensors"
	case float:
		q.Method = "fp8"
	default:
		q.Method = "int8"
	}
	r.fail(groups.err)
	r.fail(w.err)
}
