package hfconfig

// layerNormed is the older kind of decoder: norms with biases, and two matrices in the feed-forward part.
func (r *reader) layerNormed(tied bool) decoder {
	d := r.base(tied)
	d.lnBias, d.plainMLP = true, true
	r.evenly(&d)
	d.inter = 4 * d.hidden
	return d
}

func (d *decoder) biased() {
	d.qkvBias, d.oBias, d.mlpBias = true, true, true
}

func gpt2(r *reader) decoder {
	d := r.layerNormed(true)
	d.inter = r.sizeOr(d.inter, "n_inner")
	d.positions = r.need("n_positions", "n_ctx", "max_position_embeddings")
	d.biased()
	return d
}

func gptBigCode(r *reader) decoder {
	d := gpt2(r)
	if r.flag(true, "multi_query") {
		d.kvHeads = 1
	}
	return d
}

// gptNeo looks back over a window in every other layer, but keeps all in its cache, so that counts for none here.
func gptNeo(r *reader) decoder {
	d := r.layerNormed(true)
	d.inter = r.sizeOr(d.inter, "intermediate_size")
	d.positions = r.need("max_position_embeddings")
	d.oBias, d.mlpBias = true, true
	return d
}

func gptNeoX(r *reader) decoder {
	d := r.layerNormed(false)
	d.inter = r.need("intermediate_size")
	d.qkvBias = r.flag(true, "attention_bias")
	d.oBias, d.mlpBias = d.qkvBias, true
	return d
}

func gptJ(r *reader) decoder {
	d := r.layerNormed(false)
	d.inter = r.sizeOr(d.inter, "n_inner")
	d.norms, d.mlpBias, d.headBias = 1, true, true
	return d
}

func falcon(r *reader) decoder {
	d := r.layerNormed(true)
	d.inter = r.sizeOr(d.inter, "ffn_hidden_size")
	isNew := r.flag(false, "new_decoder_architecture") || r.family == "RefinedWeb"
	parallel := r.flag(true, "parallel_attn")
	if !isNew {
		d.kvHeads = d.heads
		if r.flag(true, "multi_query") {
			d.kvHeads = 1
		}
	}
	d.norms = 1
	if inParallel := 2; isNew && parallel && r.sizeOr(inParallel, "num_ln_in_parallel_attn") == inParallel ||
		!parallel {
		d.norms = 2
	}
	if r.flag(false, "bias") {
		d.biased()
	}
	return d
}

// opt's table of positions has two more than it says.
func opt(r *reader) decoder {
	d := r.layerNormed(true)
	d.inter = r.need("ffn_dim")
	d.positions = r.need("max_position_embeddings") + 2
	d.project = r.sizeOr(d.hidden, "word_embed_proj_dim")
	if r.flag(true, "enable_bias") {
		d.biased()
	}
	d.bareNorms = !r.flag(true, "layer_norm_elementwise_affine")
	d.noFinal = !r.flag(true, "do_layer_norm_before") || r.flag(false, "_remove_final_layer_norm")
	return d
}

func bloom(r *reader) decoder {
	d := r.layerNormed(true)
	d.embedNorm = true
	d.biased()
	return d
}

func mpt(r *reader) decoder {
	d := r.layerNormed(true)
	ratio := r.sizeOr(4, "expansion_ratio")
	attention := r.sub("attn_config")
	d.kvHeads = attention.sizeOr(d.heads, "kv_n_heads")
	if attention.text("attn_type") == "multiquery_attention" {
		d.kvHeads = 1
	}
	if !attention.flag(true, "alibi") && r.flag(true, "learned_pos_emb") && !attention.flag(false, "rope") {
		d.positions = r.need("max_seq_len")
	}
	if attention.flag(false, "qk_ln") {
		d.qkNorm = (d.heads + d.kvHeads) * d.headDim
	}
	r.fail(attention.err)
	if d.lnBias = !r.flag(true, "no_bias"); d.lnBias {
		d.biased()
	}
	if hidden := int64(d.hidden) * int64(ratio); hidden > most {
		r.fail(bad(r.file, "check them", "a d_model of %d with an expansion_ratio of %d", d.hidden, ratio))
	} else {
		d.inter = int(hidden)
	}
	r.evenly(&d)
	return d
}

func starCoder2(r *reader) decoder {
	d := r.layerNormed(true)
	d.inter = r.need("intermediate_size")
	if r.flag(true, "use_bias") {
		d.biased()
	}
	r.slide(&d, r.window(0), every)
	return d
}

func phi(r *reader) decoder {
	d := r.layerNormed(false)
	d.inter = r.sizeOr(d.inter, "intermediate_size", "n_inner")
	d.norms, d.headBias = 1, true
	d.biased()
	if r.flag(false, "qk_layernorm") {
		d.qkNorm = 4 * d.headDim
	}
	return d
}

func phi3(r *reader) decoder {
	d := r.bare(false)
	r.slide(&d, r.window(0), every)
	return d
}

func stableLM(r *reader) decoder {
	d := r.bare(false)
	d.lnBias = true
	d.qkvBias = r.flag(false, "use_qkv_bias")
	if r.flag(false, "use_parallel_residual") {
		d.norms = 1
	}
	if r.flag(false, "qk_layernorm") {
		d.qkNorm = (d.heads + d.kvHeads) * d.headDim
	}
	return d
}

func nemotron(r *reader) decoder {
	d := r.llama(false)
	d.lnBias, d.plainMLP = true, true
	return d
}

func olmo(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias, d.bareNorms = false, true
	return d
}

// olmo2 normalises queries and keys over all heads.
func olmo2(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias = false
	d.qkNorm = (d.heads + d.kvHeads) * d.headDim
	return d
}

func olmo3(r *reader) decoder {
	d := olmo2(r)
	r.slide(&d, r.window(4096), butEvery(4))
	return d
}

func cohere(r *reader) decoder {
	d := r.llama(true)
	d.mlpBias, d.norms = false, 1
	if r.flag(false, "use_qk_norm") {
		d.qkNorm = (d.heads + d.kvHeads) * d.headDim
	}
	return d
}

func cohere2(r *reader) decoder {
	d := r.llama(true)
	d.mlpBias, d.norms = false, 1
	r.slide(&d, r.window(4096), butEvery(r.sizeOr(4, "sliding_window_pattern", "_sliding_window_pattern")))
	return d
}
