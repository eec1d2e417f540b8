package layout

import (
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
)

// part is a type and the share of the layers whose matrix has it. The other layers have the mixture's base type.
type part struct {
	name  string
	share float64
}

// mixture is llama.cpp's rule for a quantisation name: most matrices in a base type, some with more bits.
type mixture struct {
	base, head        string
	embedding         string  // if separate from the head; "": base
	values, valuesGQA part    // attention values; valuesGQA if four heads or more share one
	down, output      part    // projections; no name: base
	low, high         float64 // range of the rule, which varies with version and importance matrix; 0: default
	wholly            bool    // one type, except for the head
}

// mixtures maps the quantiser's names to their rules.
func mixtures() map[string]mixture {
	all, half := func(name string) part { return part{name, 1} }, part{"q6_k", 0.5}
	m := map[string]mixture{
		"q2_k": {base: "q2_k", head: "q6_k", values: all("q3_k"), valuesGQA: all("q4_k"), down: all("q3_k"),
			output: all("q3_k")},
		"q2_k_s": {base: "q2_k", head: "q6_k", valuesGQA: all("q4_k"), down: part{"q4_k", 0.125}},
		"q3_k_s": {base: "q3_k", head: "q6_k"},
		"q3_k_m": {base: "q3_k", head: "q6_k", values: all("q4_k"), down: all("q4_k"), output: all("q4_k")},
		"q3_k_l": {base: "q3_k", head: "q6_k", values: all("q5_k"), down: all("q5_k"), output: all("q5_k")},
		"q4_k_s": {base: "q4_k", head: "q6_k", values: part{"q5_k", 0.125}, down: part{"q5_k", 0.125}},
		"q4_k_m": {base: "q4_k", head: "q6_k", values: half, down: half},
		"q5_k_s": {base: "q5_k", head: "q6_k"},
		"q5_k_m": {base: "q5_k", head: "q6_k", values: half, down: half},
		"iq4_nl": {base: "iq4_nl", head: "q6_k", valuesGQA: all("q5_k"), down: part{"q5_k", 0.125}},
		"iq4_xs": {base: "iq4_xs", head: "q6_k", valuesGQA: all("q5_k"), down: part{"q5_k", 0.125}},
	}
	for name, base := range map[string]string{"iq3_xxs": "iq3_xxs", "iq3_xs": "iq3_xxs", "iq3_s": "iq3_s",
		"iq3_m": "iq3_s"} {
		m[name] = mixture{base: base, head: "q6_k", values: all("iq3_s"), valuesGQA: all("q4_k"),
			down: part{"q4_k", 0.25}, low: 0.9, high: 1.12}
	}
	for name, base := range map[string]string{"iq1_s": "iq1_s", "iq1_m": "iq1_m", "iq2_xxs": "iq2_xxs",
		"iq2_xs": "iq2_xs", "iq2_s": "iq2_xs", "iq2_m": "iq2_s"} {
		m[name] = mixture{base: base, head: "q5_k", embedding: "q2_k", values: all("q2_k"), valuesGQA: all("q4_k"),
			down: part{"q2_k", 0.125}, low: 0.85, high: 1.2}
	}
	// aliases of the quantiser
	for alias, name := range map[string]string{"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"} {
		m[alias] = m[name]
	}
	for _, name := range []string{"q4_0", "q4_1", "q5_0", "q5_1", "q6_k"} {
		m[name] = mixture{base: name, head: "q6_k", wholly: true}
	}
	for _, name := range []string{"tq1_0", "tq2_0"} {
		m[name] = mixture{base: name, head: "q6_k", embedding: "q4_k"}
	}
	m["q8_0"] = mixture{base: "q8_0", head: "q8_0", wholly: true}
	return m
}

// fitting returns the type for a row, another if the row is no multiple of the type's block.
func fitting(name string, cols int64) string {
	if d, _ := dtype.Named(name); cols%d.Values != 0 {
		switch name {
		case "q4_k":
			name = "q5_0"
		case "q5_k":
			name = "q5_1"
		case "q6_k":
			name = "q8_0"
		case "tq1_0", "tq2_0":
			name = "q4_0"
		default:
			name = "iq4_nl"
		}
	}
	if cols%32 != 0 {
		return "f16"
	}
	return name
}

// inPackage returns the dtype of a matrix of a GGUF in a package that keeps types. Types without a form are
// decoded.
func inPackage(name string, plain dtype.DType) dtype.DType {
	t, _ := gguf.TypeNamed(name)
	d := t.DType()
	switch {
	case !mlc.Keeps(t):
		return plain
	case t == gguf.Q4_0: // its scales have the dtype of the activations
		d.Bytes += plain.Bytes - 2
	}
	return d
}

// Mixture returns how llama.cpp's quantiser stores a model, or the package of that file if plain, the dtype of
// its vectors, is given. In a file, vectors are f32.
func Mixture(name string, m modelsize.Model, plain *dtype.DType) (Format, bool) {
	x, ok := mixtures()[name]
	if !ok {
		return Format{}, false
	}
	f := Format{Name: name, Scales: "in blocks", Plain: Float32, all: true, Rough: !x.wholly, Low: 0.93,
		High: 1.06}
	if x.low > 0 {
		f.Low, f.High = x.low, x.high
	}
	as := func(name string) dtype.DType {
		d, _ := dtype.Named(name)
		return d
	}
	if plain != nil {
		f.Plain, as = *plain, func(name string) dtype.DType { return inPackage(name, *plain) }
	}
	tied := !slices.ContainsFunc(m.Weights,
		func(w hfconfig.Weight) bool { return w.Part == hfconfig.Head && w.Cols > 1 })
	grouped := m.KVHeads > 0 && m.Heads/m.KVHeads >= 4
	f.matrix = func(rows, cols int64, w hfconfig.Weight) Stored {
		p := x.part(w, tied, grouped)
		base, more := as(fitting(x.base, cols)).Size(rows, cols), as(fitting(p.name, cols)).Size(rows, cols)
		return Stored{Values: base + int64(p.share*float64(more-base))}
	}
	return f, true
}

// part returns the type of a matrix. A tied embedding counts as the head.
func (x mixture) part(w hfconfig.Weight, tied, grouped bool) part {
	p := part{x.base, 1}
	switch {
	case w.Part == hfconfig.Head, w.Part == hfconfig.Embedding && tied:
		p.name = x.head
	case w.Part == hfconfig.Embedding && x.embedding != "":
		p.name = x.embedding
	case strings.Contains(w.Name, "v_proj") && grouped && x.valuesGQA.name != "":
		return x.valuesGQA
	}
	for projection, own := range map[string]part{"v_proj": x.values, "down_proj": x.down, "o_proj": x.output} {
		if own.name != "" && strings.Contains(w.Name, projection) {
			return own
		}
	}
	return p
}

// IsMixture reports whether a name is one of the quantiser's, in lower case.
func IsMixture(name string) bool {
	_, ok := mixtures()[name]
	return ok
}

// Readable reports whether weights can be made from a mixture: its base type can be read.
func Readable(name string) bool {
	t, ok := gguf.TypeNamed(mixtures()[name].base)
	return ok && t.Readable()
}
