package hfconfig

// The rules of single families.

func qwen(r *reader, d *decoder) {
	d.HeadDim = r.sizeOr(d.HeadDim, "kv_channels")
	d.Inter /= 2 // the config has the sum of both matrices
}

// qwenWindow reads a sliding window, which the layers from max_window_layers on have.
func qwenWindow(r *reader, d *decoder) {
	if r.flag(false, "use_sliding_window") {
		from := r.count(28, "max_window_layers")
		r.slide(d, r.window(4096), func(layer int) bool { return layer >= from })
	}
}

func qwenShared(r *reader, d *decoder) {
	d.moe.shared, d.moe.sharedGate = r.need("shared_expert_intermediate_size"), true
}

// qwenDense reads the layers without experts.
func qwenDense(r *reader, d *decoder) {
	step, only := r.sizeOr(1, "decoder_sparse_step"), r.numbers("mlp_only_layers")
	d.moe.dense = d.each(r, func(layer int) bool { return only[layer] || (layer+1)%step != 0 })
}

func graniteShared(r *reader, d *decoder) { d.moe.shared = r.count(0, "shared_intermediate_size") }

// chatGLM follows the family's own code, before transformers included it.
func chatGLM(r *reader, d *decoder) {
	d.Inter = r.need("ffn_hidden_size")
	d.HeadDim = r.sizeOr(d.HeadDim, "kv_channels")
	if r.flag(false, "multi_query_attention") {
		d.KVHeads = r.need("multi_query_group_num")
	}
	even(r, d)
	d.has[out] = r.flag(false, "add_bias_linear")
	d.has[mlp] = d.has[out]
	d.has[qkv] = r.flag(false, "add_qkv_bias") || d.has[out]
	d.has[norm] = !r.flag(true, "rmsnorm")
	d.noFinal = !r.flag(true, "post_layer_norm")
}

func falcon(r *reader, d *decoder) {
	d.Inter = r.sizeOr(d.Inter, "ffn_hidden_size")
	isNew := r.flag(false, "new_decoder_architecture") || r.family == "RefinedWeb"
	parallel := r.flag(true, "parallel_attn")
	if !isNew {
		d.KVHeads = d.Heads
		if r.flag(true, "multi_query") {
			d.KVHeads = 1
		}
	}
	d.norms = 1
	if inParallel := 2; isNew && parallel && r.sizeOr(inParallel, "num_ln_in_parallel_attn") == inParallel ||
		!parallel {
		d.norms = 2
	}
	if r.flag(false, "bias") {
		on(qkv, out, mlp)(r, d)
	}
}

// opt has two more positions than its config says.
func opt(r *reader, d *decoder) {
	d.Inter = r.need("ffn_dim")
	d.positions = r.need("max_position_embeddings") + 2
	d.project = r.sizeOr(d.Hidden, "word_embed_proj_dim")
	if r.flag(true, "enable_bias") {
		on(qkv, out, mlp)(r, d)
	}
	d.has[bareNorms] = !r.flag(true, "layer_norm_elementwise_affine")
	d.noFinal = !r.flag(true, "do_layer_norm_before") || r.flag(false, "_remove_final_layer_norm")
}

func mpt(r *reader, d *decoder) {
	ratio := r.sizeOr(4, "expansion_ratio")
	attention := r.sub("attn_config")
	d.KVHeads = attention.sizeOr(d.Heads, "kv_n_heads")
	if attention.text("attn_type") == "multiquery_attention" {
		d.KVHeads = 1
	}
	if !attention.flag(true, "alibi") && r.flag(true, "learned_pos_emb") && !attention.flag(false, "rope") {
		d.positions = r.need("max_seq_len")
	}
	if attention.flag(false, "qk_ln") {
		d.qkNorm = (d.Heads + d.KVHeads) * d.HeadDim
	}
	r.fail(attention.err)
	if d.has[norm] = !r.flag(true, "no_bias"); d.has[norm] {
		on(qkv, out, mlp)(r, d)
	}
	if hidden := int64(d.Hidden) * int64(ratio); hidden > most {
		r.fail(bad(r.file, "correct one of them", "d_model %d times expansion_ratio %d is more than %d", d.Hidden, ratio, most))
	} else {
		d.Inter = int(hidden)
	}
	even(r, d)
}

// routed reads DeepSeek's mixture: the first layers are dense, and all tokens use the shared experts.
func routed(r *reader, d *decoder) {
	if _, _, ok := r.get("n_routed_experts"); !ok &&
		(r.family == "deepseek" || r.family == "deepseek_v2" || r.family == "dots1") {
		return
	}
	d.Experts, d.ActiveExperts = r.need("n_routed_experts"), r.sizeOr(8, "num_experts_per_tok")
	e := &mixture{inter: r.need("moe_intermediate_size")}
	e.shared = e.inter * r.count(0, "n_shared_experts")
	first, freq := r.count(0, "first_k_dense_replace"), r.sizeOr(1, "moe_layer_freq")
	e.dense = d.each(r, func(layer int) bool { return layer < first || layer%freq != 0 })
	d.moe = e
}

// corrected reads whether the router has a bias.
func corrected(r *reader, d *decoder) {
	if r.text("topk_method") == "noaux_tc" {
		routerBias(r, d)
	}
}

// gptOSS has biases everywhere, and a sink for each head.
func gptOSS(r *reader, d *decoder) {
	d.ActiveExperts = r.sizeOr(4, "num_experts_per_tok", "experts_per_token")
	d.sinks, d.moe.expertBias, d.moe.routerBias = d.Heads, true, true
}

// llama4 has a shared expert and dense layers. Three of four layers see only a chunk of the text.
func llama4(r *reader, d *decoder) {
	step := r.sizeOr(1, "interleave_moe_layer_step")
	only := r.numbers("moe_layers")
	d.Experts, d.ActiveExperts = r.need("num_local_experts"), r.sizeOr(1, "num_experts_per_tok")
	d.moe = &mixture{inter: d.Inter, shared: d.Inter, denseInter: r.sizeOr(d.Inter, "intermediate_size_mlp")}
	d.moe.dense = d.each(r, func(i int) bool {
		if len(only) > 0 {
			return !only[i]
		}
		return (i+1)%step != 0
	})
	r.slide(d, r.count(8192, "attention_chunk_size"), butEvery(4))
}
