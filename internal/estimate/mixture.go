package estimate

import (
	"slices"
	"strings"

	"llmparity/internal/hfconfig"
)

// block is how many values a block of one of GGUF's types has, and its bytes.
type block struct{ values, bytes int64 }

func (b block) of(rows, cols int64) int64 { return rows * ceil(cols, b.values) * b.bytes }

// ggufTypes are those of GGUF's types that quantise in blocks.
func ggufTypes() map[string]block {
	return map[string]block{
		"q4_0": {32, 18}, "q4_1": {32, 20}, "q5_0": {32, 22}, "q5_1": {32, 24}, "q8_0": {32, 34},
		"q2_k": {256, 84}, "q3_k": {256, 110}, "q4_k": {256, 144}, "q5_k": {256, 176}, "q6_k": {256, 210},
		"iq2_xxs": {256, 66}, "iq2_xs": {256, 74}, "iq2_s": {256, 82}, "iq3_xxs": {256, 98}, "iq3_s": {256, 110},
		"iq1_s": {256, 50}, "iq1_m": {256, 56},
		"iq4_nl": {32, 18}, "iq4_xs": {256, 136}, "tq1_0": {256, 54}, "tq2_0": {256, 66},
	}
}

// part is a type, and the share of the layers in which a matrix has it; the others have the mixture's base.
type part struct {
	name  string
	share float64
}

// mixture is what llama.cpp's quantiser makes of a name: most matrices in one type, some in one of more bits.
type mixture struct {
	base, head        string
	embedding         string // where it isn't the head as well; "": base
	values, valuesGQA part   // of attention; where four heads or more share one, the latter
	down, output      part   // projections; without a name: base
	// the range about the rule, which differs by version and with an importance matrix; 0: the usual one
	low, high float64
	wholly    bool // the name is of one type, but for the head
}

// mixtures are the quantiser's names that stand for more than one type.
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
	// as the quantiser takes them
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

// fitting is the type that a row of so many values gets in place of one whose blocks don't divide it.
func fitting(name string, cols int64) block {
	types := ggufTypes()
	if cols%types[name].values != 0 {
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
		return block{1, 2} // f16
	}
	return types[name]
}

// ggufFormat is how llama.cpp's quantiser stores a model under one of its names. Vectors are f32.
func ggufFormat(name string, m Model) (format, bool) {
	x, ok := mixtures()[name]
	if !ok {
		return format{}, false
	}
	f := format{name: name, scales: "in blocks", plain: number{"f32", 32}, all: true, rough: !x.wholly, low: 0.93,
		high: 1.06}
	if x.low > 0 {
		f.low, f.high = x.low, x.high
	}
	tied := !slices.ContainsFunc(m.Weights,
		func(w hfconfig.Weight) bool { return w.Part == hfconfig.Head && w.Cols > 1 })
	grouped := m.KVHeads > 0 && m.Heads/m.KVHeads >= 4
	f.matrix = func(rows, cols int64, w hfconfig.Weight) stored {
		p := x.part(w, tied, grouped)
		base, more := fitting(x.base, cols).of(rows, cols), fitting(p.name, cols).of(rows, cols)
		return stored{values: base + int64(p.share*float64(more-base))}
	}
	return f, true
}

// part says of which type a matrix is. A tied embedding is the head.
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
