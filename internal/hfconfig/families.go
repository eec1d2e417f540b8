package hfconfig

import "strconv"

// A family reads the sizes of a model_type. What it takes for granted where a config doesn't say it are the defaults of
// transformers' own configuration classes, because published configs rely on them.
type family func(*reader) decoder

// families says for each model_type what it is.
func families() map[string]family {
	llama := func(r *reader) decoder { return r.llama(false) }
	return map[string]family{
		"llama": llama, "mistral": mistral, "ministral": mistral, "ministral3": mistral, "mixtral": mixtral,
		"yi": llama, "Yi": llama, "aquila": llama,
		"arcee": arcee, "helium": llama, "smollm3": smollm3, "granite": llama, "minicpm": minicpm, "minicpm3": minicpm3,
		"internlm": internlm, "internlm2": internlm2, "internlm3": internlm3, "baichuan": baichuan, "exaone": exaone,
		"exaone4":  exaone4,
		"seed_oss": seedOSS, "hunyuan_v1_dense": hunyuan, "ernie4_5": ernie, "ernie4_5_moe": ernieMoE,
		"qwen": qwen, "qwen2": qwen2, "qwen2_moe": qwen2MoE, "qwen3": qwen3, "qwen3_moe": qwen3MoE,
		"gemma": gemma, "gemma2": gemma2, "gemma3_text": gemma3, "gemma3": gemma3,
		"phi": phi, "phi3": phi3, "phimoe": phiMoE, "stablelm": stableLM, "stablelm_epoch": stableLM,
		"olmo": olmo, "olmo2": olmo2, "olmo3": olmo3, "olmoe": olmoe, "cohere": cohere, "cohere2": cohere2,
		"nemotron":   nemotron,
		"granitemoe": graniteMoE, "granitemoeshared": graniteMoE, "dbrx": dbrx, "gpt_oss": gptOSS,
		"llama4_text": llama4,
		"deepseek":    deepseek, "deepseek_v2": deepseek, "deepseek_v3": deepseek, "kimi_k2": deepseek,
		"glm": glm, "glm4": glm4, "glm4_moe": glm4MoE, "dots1": glm4MoE, "chatglm": chatGLM,
		"gpt2": gpt2, "gpt_bigcode": gptBigCode, "gpt_neo": gptNeo, "gpt_neox": gptNeoX, "gptj": gptJ, "codegen": gptJ,
		"falcon": falcon, "RefinedWebModel": falcon, "RefinedWeb": falcon, "opt": opt, "bloom": bloom, "mpt": mpt,
		"starcoder2": starCoder2,
	}
}

// aliases are the text parts of models that see or hear, as their configs call them.
var aliases = map[string]string{
	"qwen2_vl": "qwen2", "qwen2_vl_text": "qwen2", "qwen2_5_vl": "qwen2", "qwen2_5_vl_text": "qwen2",
	"qwen2_audio": "qwen2",
	"qwen3_vl":    "qwen3", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe", "mistral3": "mistral",
	"llava": "llama", "llava_next": "mistral",
	"paligemma": "gemma", "internvl": "qwen2", "llama4": "llama4_text", "glm4v_text": "glm4",
	"glm4v_moe_text": "glm4_moe",
	"idefics3":       "llama", "smolvlm": "llama", "kimi_vl": "deepseek_v3", "deepseek_vl_v2": "deepseek_v2",
	"phi3_v": "phi3",
}

// base reads what every family has, under the names that families have had for it.
func (r *reader) base(tied bool) decoder {
	d := decoder{
		layers: r.need("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
		hidden: r.need("hidden_size", "n_embd", "d_model", "n_embed"),
		heads:  r.need("num_attention_heads", "n_head", "n_heads", "num_heads"),
		vocab:  r.need("vocab_size", "padded_vocab_size"),
		tied:   r.flag(tied, "tie_word_embeddings"),
		norms:  2,
	}
	d.kvHeads = r.sizeOr(d.heads, "num_key_value_heads", "num_kv_heads", "n_head_kv")
	d.headDim = r.sizeOr(0, "head_dim")
	return d
}

// defaults are what a configuration class takes where a config doesn't say it.
func (r *reader) defaults(sizes map[string]int) {
	for name, n := range sizes {
		if _, ok := r.get(name); !ok {
			r.fields[name] = strconv.AppendInt(nil, int64(n), 10)
		}
	}
}

// textDefaults are those of a text part, of which published configs say no more than what differs from its class.
func (r *reader) textDefaults(kind string) {
	switch kind {
	case "llama":
		r.defaults(map[string]int{"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
			"num_attention_heads": 32, "vocab_size": 32000})
	case "mistral":
		r.defaults(map[string]int{"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
			"num_attention_heads": 32, "num_key_value_heads": 8,
			"vocab_size": 32000})
	}
}

// maxLayers is beyond any model; what lists something for each layer stays small.
const maxLayers = 1 << 14

// evenly works out the head's size, and says what doesn't go together.
func (r *reader) evenly(d *decoder) {
	switch {
	case r.err != nil:
	case d.layers > maxLayers:
		r.fail(bad(r.file, "check it", "%d layers; no model has more than %d", d.layers, maxLayers))
	case d.headDim == 0 && d.hidden%d.heads != 0:
		r.fail(bad(r.file, "give head_dim, or correct one of them",
			"a hidden_size of %d is no multiple of %d attention heads, and there is no head_dim", d.hidden, d.heads))
	case d.heads%d.kvHeads != 0:
		r.fail(bad(r.file, "correct one of them", "%d attention heads can't share %d key-value heads evenly", d.heads,
			d.kvHeads))
	}
	if d.headDim == 0 && r.err == nil {
		d.headDim = d.hidden / d.heads
	}
}

// llama is the plain decoder: RMS norms, three matrices in the feed-forward part, a head of its own.
func (r *reader) llama(tied bool) decoder {
	d := r.base(tied)
	d.inter = r.need("intermediate_size")
	d.qkvBias = r.flag(false, "attention_bias")
	d.oBias = d.qkvBias
	d.mlpBias = r.flag(false, "mlp_bias")
	r.evenly(&d)
	return d
}

// bare is llama where biases are not asked for.
func (r *reader) bare(tied bool) decoder {
	d := r.llama(tied)
	d.qkvBias, d.oBias, d.mlpBias = false, false, false
	return d
}

// window reads the sliding window; where nothing is said of it, def is the family's.
func (r *reader) window(def int) int {
	if !r.says("sliding_window") {
		return def
	}
	return r.count(0, "sliding_window")
}

// slide gives layers their windows: those that layer_types says, or else those that the family's rule says.
func (r *reader) slide(d *decoder, window int, slides func(layer int) bool) {
	if r.err != nil || window == 0 {
		return
	}
	types := r.list("layer_types")
	if len(types) != 0 && len(types) != d.layers {
		r.fail(bad(r.file, "correct one of them", "%slayer_types has %d entries, the model has %d layers", r.prefix,
			len(types), d.layers))
		return
	}
	d.windows = make([]int, d.layers)
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

// butEvery is the rule of models in which each nth layer sees all.
func butEvery(n int) func(int) bool { return func(layer int) bool { return (layer+1)%n != 0 } }

func mistral(r *reader) decoder {
	d := r.bare(false)
	window := 4096
	if r.family == "ministral3" {
		window = 0
	}
	r.slide(&d, r.window(window), every)
	return d
}

func mixtral(r *reader) decoder {
	d := r.bare(false)
	d.moe = &mixture{experts: r.need("num_local_experts"), perToken: r.sizeOr(2, "num_experts_per_tok"), inter: d.inter}
	r.slide(&d, r.window(0), every)
	return d
}

func arcee(r *reader) decoder {
	d := r.llama(false)
	d.plainMLP = true
	return d
}

func smollm3(r *reader) decoder {
	d := r.llama(true)
	if r.flag(false, "use_sliding_window") {
		r.slide(&d, r.window(0), every)
	}
	return d
}

func minicpm(r *reader) decoder { return r.bare(true) }

func minicpm3(r *reader) decoder {
	d := r.base(true)
	d.inter = r.need("intermediate_size")
	d.headDim = r.need("qk_nope_head_dim") + r.need("qk_rope_head_dim")
	d.valueDim = r.sizeOr(d.hidden/d.heads, "v_head_dim")
	d.mla = &latent{qRank: r.count(0, "q_lora_rank"), kvRank: r.need("kv_lora_rank"), rope: r.need("qk_rope_head_dim"),
		nope: r.need("qk_nope_head_dim"),
		bias: r.flag(false, "attention_bias")}
	r.evenly(&d)
	return d
}

func internlm(r *reader) decoder {
	d := r.bare(false)
	d.qkvBias = r.flag(true, "bias")
	d.oBias = d.qkvBias
	return d
}

func internlm2(r *reader) decoder {
	d := r.bare(false)
	d.qkvBias = r.flag(false, "bias")
	d.oBias = d.qkvBias
	return d
}

func internlm3(r *reader) decoder {
	d := r.llama(false)
	d.qkvBias = r.flag(d.qkvBias, "qkv_bias")
	d.oBias = r.flag(d.oBias, "bias")
	d.mlpBias = r.flag(d.mlpBias, "bias")
	return d
}

func baichuan(r *reader) decoder { return r.bare(false) }

func exaone(r *reader) decoder { return r.bare(false) }

// exaone4 normalises behind attention and feed-forward part, and queries and keys by head.
func exaone4(r *reader) decoder {
	d := r.bare(false)
	d.qkNorm = 2 * d.headDim
	pattern := 4
	if r.says("sliding_window_pattern") {
		if name := r.list("layer_types"); len(name) == 0 {
			if raw, ok := r.get("sliding_window_pattern"); ok && raw[0] == '"' {
				pattern = max(len(r.text("sliding_window_pattern")), 1)
			} else {
				pattern = r.sizeOr(4, "sliding_window_pattern")
			}
		}
	}
	r.slide(&d, r.window(4096), func(i int) bool { return butEvery(pattern)(i) && i != d.layers-1 })
	return d
}

func seedOSS(r *reader) decoder {
	d := r.llama(false)
	d.qkvBias = r.flag(true, "attention_bias")
	d.oBias = r.flag(false, "attention_out_bias")
	return d
}

func hunyuan(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias = false
	d.qkNorm = 2 * d.headDim
	return d
}

func ernie(r *reader) decoder {
	d := r.bare(true)
	d.qkvBias = r.flag(false, "use_bias")
	d.oBias, d.mlpBias = d.qkvBias, d.qkvBias
	return d
}

func qwen(r *reader) decoder {
	d := r.bare(false)
	d.headDim = r.sizeOr(d.headDim, "kv_channels")
	d.qkvBias = true
	d.inter /= 2 // the config has that of both matrices together
	return d
}

// qwenWindow is off unless it is asked for, and then for the layers from max_window_layers on.
func qwenWindow(r *reader, d *decoder) {
	if r.flag(false, "use_sliding_window") {
		from := r.count(28, "max_window_layers")
		r.slide(d, r.window(4096), func(layer int) bool { return layer >= from })
	}
}

func qwen2(r *reader) decoder {
	d := r.bare(false)
	d.qkvBias = true
	qwenWindow(r, &d)
	return d
}

// qwenDense are the layers without experts.
func qwenDense(r *reader, d *decoder) []bool {
	step, only := r.sizeOr(1, "decoder_sparse_step"), r.numbers("mlp_only_layers")
	return d.each(r, func(layer int) bool { return only[layer] || (layer+1)%step != 0 })
}

// each asks for every layer.
func (d decoder) each(r *reader, is func(int) bool) []bool {
	if r.err != nil {
		return nil
	}
	list := make([]bool, d.layers)
	for i := range list {
		list[i] = is(i)
	}
	return list
}

func qwen2MoE(r *reader) decoder {
	d := r.base(false)
	d.inter = r.sizeOr(5632, "intermediate_size")
	r.evenly(&d)
	d.qkvBias = r.flag(true, "qkv_bias")
	d.moe = &mixture{experts: r.need("num_experts"), perToken: r.sizeOr(4, "num_experts_per_tok"),
		inter:  r.need("moe_intermediate_size"),
		shared: r.need("shared_expert_intermediate_size"), sharedGate: true, dense: qwenDense(r, &d)}
	qwenWindow(r, &d)
	return d
}

func qwen3(r *reader) decoder {
	r.defaults(map[string]int{"head_dim": 128})
	d := r.llama(false)
	d.mlpBias = false
	d.qkNorm = 2 * d.headDim
	qwenWindow(r, &d)
	return d
}

func qwen3MoE(r *reader) decoder {
	d := r.base(false)
	d.inter = r.sizeOr(6144, "intermediate_size")
	r.evenly(&d)
	d.qkvBias = r.flag(false, "attention_bias")
	d.oBias = d.qkvBias
	d.qkNorm = 2 * d.headDim
	d.moe = &mixture{experts: r.need("num_experts", "num_local_experts"), perToken: r.sizeOr(8, "num_experts_per_tok"),
		inter: r.need("moe_intermediate_size"), dense: qwenDense(r, &d)}
	qwenWindow(r, &d)
	return d
}

func (r *reader) gemma() decoder {
	d := r.base(true)
	d.headDim = r.sizeOr(256, "head_dim")
	d.inter = r.need("intermediate_size")
	r.evenly(&d)
	d.qkvBias = r.flag(false, "attention_bias")
	d.oBias = d.qkvBias
	return d
}

func gemma(r *reader) decoder { return r.gemma() }

func gemma2(r *reader) decoder {
	d := r.gemma()
	d.norms = 4
	r.slide(&d, r.window(4096), butEvery(2))
	return d
}

// gemma3 published its larger configs with what differs from the classes' defaults alone.
func gemma3(r *reader) decoder {
	r.defaults(map[string]int{"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4})
	d := r.gemma()
	d.norms = 4
	d.qkNorm = 2 * d.headDim
	r.slide(&d, r.window(4096), butEvery(r.sizeOr(6, "sliding_window_pattern", "_sliding_window_pattern")))
	return d
}

func glm(r *reader) decoder {
	r.defaults(map[string]int{"head_dim": 128})
	d := r.llama(false)
	d.qkvBias, d.oBias, d.mlpBias = r.flag(true, "attention_bias"), false, false
	return d
}

func glm4(r *reader) decoder {
	d := glm(r)
	d.norms = 4
	return d
}

// glm4MoE is also that of dots1, which normalises queries and keys always.
func glm4MoE(r *reader) decoder {
	d := r.llama(false)
	d.oBias, d.mlpBias = false, false
	if d1 := r.family == "dots1"; d1 || r.flag(false, "use_qk_norm") {
		d.qkNorm = 2 * d.headDim
		d.oBias = d1 && d.qkvBias
	}
	d.moe = r.routed(&d)
	d.moe.routerBias = true
	return d
}

// chatGLM is the family's own code, before transformers had it.
func chatGLM(r *reader) decoder {
	d := r.base(false)
	d.inter = r.need("ffn_hidden_size")
	d.headDim = r.sizeOr(d.headDim, "kv_channels")
	if r.flag(false, "multi_query_attention") {
		d.kvHeads = r.need("multi_query_group_num")
	}
	r.evenly(&d)
	d.oBias = r.flag(false, "add_bias_linear")
	d.mlpBias = d.oBias
	d.qkvBias = r.flag(false, "add_qkv_bias") || d.oBias
	d.lnBias = !r.flag(true, "rmsnorm")
	d.noFinal = !r.flag(true, "post_layer_norm")
	return d
}
