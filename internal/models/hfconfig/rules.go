package hfconfig

import "strconv"

// rule reads fields of a config into a decoder.
type rule func(*reader, *decoder)

// defaults are values of missing fields.
type defaults map[string]int

func (sizes defaults) rule(r *reader, _ *decoder) {
	for name, n := range sizes {
		if _, _, ok := r.get(name); !ok {
			r.fields[name] = strconv.AppendInt(nil, int64(n), 10)
		}
	}
}

// textDefaults are those of text parts, whose published configs have only what differs from the class's defaults.
var textDefaults = map[string]defaults{
	"llama": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
		"vocab_size": 32000},
	"mistral": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
		"num_key_value_heads": 8, "vocab_size": 32000},
}

// field is what a decoder has or lacks.
type field int

const (
	qkv       field = iota // biases of queries, keys and values
	out                    // of what attention gives
	mlp                    // of the feed-forward part
	norm                   // of norms
	head                   // of the head
	plainMLP               // two matrices rather than three
	bareNorms              // norms without weights
	embedNorm              // a norm after the embedding
	fields
)

func set(to bool, fields []field) rule {
	return func(_ *reader, d *decoder) {
		for _, f := range fields {
			d.has[f] = to
		}
	}
}

func on(fields ...field) rule  { return set(true, fields) }
func off(fields ...field) rule { return set(false, fields) }

// reads sets fields if the config has a flag.
func reads(name string, fields ...field) rule {
	return func(r *reader, d *decoder) {
		for _, f := range fields {
			d.has[f] = r.flag(d.has[f], name)
		}
	}
}

// when applies rules if a flag is set.
func when(name string, def bool, rules ...rule) rule {
	return func(r *reader, d *decoder) {
		if r.flag(def, name) {
			d.follow(r, rules)
		}
	}
}

func (d *decoder) follow(r *reader, rules []rule) {
	for _, rule := range rules {
		rule(r, d)
	}
}

// base reads what every family has, under several names.
func base(r *reader, d *decoder) {
	d.Layers = r.need("num_hidden_layers", "n_layer", "n_layers", "num_layers")
	d.Hidden = r.need("hidden_size", "n_embd", "d_model", "n_embed")
	d.Heads = r.need("num_attention_heads", "n_head", "n_heads", "num_heads")
	d.Vocab = r.need("vocab_size", "padded_vocab_size")
	d.tied = r.flag(false, "tie_word_embeddings")
	d.norms = 2
	d.KVHeads = r.sizeOr(d.Heads, "num_key_value_heads", "num_kv_heads", "n_head_kv")
	d.HeadDim = r.sizeOr(0, "head_dim")
}

// tied makes the embedding the head, unless the config says otherwise.
func tied(r *reader, d *decoder) { d.tied = r.flag(true, "tie_word_embeddings") }

func intermediate(r *reader, d *decoder) { d.Inter = r.need("intermediate_size") }

// maxLayers limits lists with an element for each layer.
const maxLayers = 1 << 14

// even calculates the head size and checks how sizes fit together.
func even(r *reader, d *decoder) {
	switch {
	case r.err != nil:
	case d.Layers > maxLayers:
		r.fail(bad(r.file, "correct it", "the model has %d layers, want at most %d", d.Layers, maxLayers))
	case d.HeadDim == 0 && d.Hidden%d.Heads != 0:
		r.fail(bad(r.file, "give head_dim, or correct one of them",
			"hidden_size %d is not a multiple of %d attention heads, and there is no head_dim", d.Hidden, d.Heads))
	case d.Heads%d.KVHeads != 0:
		r.fail(bad(r.file, "correct one of them", "%d attention heads are not a multiple of %d key-value heads",
			d.Heads, d.KVHeads))
	}
	if d.HeadDim == 0 && r.err == nil {
		d.HeadDim = d.Hidden / d.Heads
	}
}

// llama is the plain decoder: RMS norms, three matrices in the feed-forward part, a head of its own.
func llama(r *reader, d *decoder) {
	d.follow(r, []rule{base, intermediate, reads("attention_bias", qkv, out), reads("mlp_bias", mlp), even})
}

// bare is llama without biases.
func bare(r *reader, d *decoder) { d.follow(r, []rule{llama, off(qkv, out, mlp)}) }

// layerNormed is the older kind of decoder: norms with biases, and two matrices in the feed-forward part.
func layerNormed(r *reader, d *decoder) {
	d.follow(r, []rule{base, on(norm, plainMLP), even})
	d.Inter = 4 * d.Hidden
}

// inner reads the width of the feed-forward part, if the config has it.
func inner(names ...string) rule {
	return func(r *reader, d *decoder) { d.Inter = r.sizeOr(d.Inter, names...) }
}

func positions(names ...string) rule {
	return func(r *reader, d *decoder) { d.positions = r.need(names...) }
}

func norms(n int) rule { return func(_ *reader, d *decoder) { d.norms = n } }

func oneKVHead(_ *reader, d *decoder) { d.KVHeads = 1 }

// perHead and overHeads normalise queries and keys, by head or over all heads.
func perHead(_ *reader, d *decoder)   { d.qkNorm += 2 * d.HeadDim }
func overHeads(_ *reader, d *decoder) { d.qkNorm = (d.Heads + d.KVHeads) * d.HeadDim }

// window reads the sliding window, with the family's default.
func (r *reader) window(def int) int {
	if !r.says("sliding_window") {
		return def
	}
	return r.count(0, "sliding_window")
}

// slide sets the windows of layers by layer_types, or by the family's rule.
func (r *reader) slide(d *decoder, window int, slides func(layer int) bool) {
	if r.err != nil || window == 0 {
		return
	}
	types := r.list("layer_types")
	if len(types) != 0 && len(types) != d.Layers {
		r.fail(bad(r.file, "correct one of them", "%slayer_types has %d entries, the model has %d layers", r.prefix,
			len(types), d.Layers))
		return
	}
	d.windows = make([]int, d.Layers)
	for i := range d.windows {
		does := slides(i)
		if len(types) > 0 {
			does = string(types[i]) == `"sliding_attention"` || string(types[i]) == `"chunked_attention"`
		}
		if does {
			d.windows[i] = window
		}
	}
}

func every(int) bool { return true }

// butEvery excludes each nth layer.
func butEvery(n int) func(int) bool { return func(layer int) bool { return (layer+1)%n != 0 } }

// slides is a window in the layers that a rule picks.
func slides(def int, which func(layer int) bool) rule {
	return func(r *reader, d *decoder) { r.slide(d, r.window(def), which) }
}

// slidesBut is a window in all layers but each nth.
func slidesBut(n int) rule {
	return func(r *reader, d *decoder) {
		r.slide(d, r.window(4096), butEvery(r.sizeOr(n, "sliding_window_pattern", "_sliding_window_pattern")))
	}
}

// experts makes the feed-forward part a mixture.
func experts(perToken int, names ...string) rule {
	return func(r *reader, d *decoder) {
		d.Experts, d.ActiveExperts = r.need(names...), r.sizeOr(perToken, "num_experts_per_tok")
		d.moe = &mixture{inter: d.Inter}
	}
}

// narrow reads the width of an expert.
func narrow(r *reader, d *decoder) { d.moe.inter = r.need("moe_intermediate_size") }

// each evaluates a function for every layer.
func (d *decoder) each(r *reader, is func(int) bool) []bool {
	if r.err != nil {
		return nil
	}
	list := make([]bool, d.Layers)
	for i := range list {
		list[i] = is(i)
	}
	return list
}

func routerBias(_ *reader, d *decoder) {
	if d.moe != nil {
		d.moe.routerBias = true // e_score_correction_bias
	}
}

// latentHeads reads the sizes of latent attention.
func latentHeads(r *reader, d *decoder) {
	d.mla = &latent{qRank: r.count(0, "q_lora_rank"), kvRank: r.need("kv_lora_rank"), rope: r.need("qk_rope_head_dim"),
		nope: r.need("qk_nope_head_dim"), bias: r.flag(false, "attention_bias")}
	d.HeadDim, d.valueDim = d.mla.nope+d.mla.rope, r.need("v_head_dim")
}
