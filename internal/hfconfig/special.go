package hfconfig

// The rules of single families.

// minicpm3 has values of a plain head's size, unless it says another; deepseek says it.
func minicpm3(r *reader, d *decoder) { d.valueDim = r.sizeOr(d.hidden/d.heads, "v_head_dim") }
func deepseek(r *reader, d *decoder) { d.valueDim = r.need("v_head_dim") }

// exaone4 has windows in all layers but each nth and the last.
func exaone4(r *reader, d *decoder) {
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
	r.slide(d, r.window(4096), func(i int) bool { return butEvery(pattern)(i) && i != d.layers-1 })
}

func qwen(r *reader, d *decoder) {
	d.headDim = r.sizeOr(d.headDim, "kv_channels")
	d.inter /= 2 // the config has that of both matrices together
}

// qwenWindow is off unless it is asked for, and then for the layers from max_window_layers on.
func qwenWindow(r *reader, d *decoder) {
	if r.flag(false, "use_sliding_window") {
		from := r.count(28, "max_window_layers")
		r.slide(d, r.window(4096), func(layer int) bool { return layer >= from })
	}
}

func qwenShared(r *reader, d *decoder) {
	d.moe.shared, d.moe.sharedGate = r.need("shared_expert_intermediate_size"), true
}

// qwenDense are the layers without experts.
func qwenDense(r *reader, d *decoder) {
	step, only := r.sizeOr(1, "decoder_sparse_step"), r.numbers("mlp_only_layers")
	d.moe.dense = d.each(r, func(layer int) bool { return only[layer] || (layer+1)%step != 0 })
}

func graniteShared(r *reader, d *decoder) { d.moe.shared = r.count(0, "shared_intermediate_size") }

// chatGLM is the family's own code, before transformers had it.
func chatGLM(r *reader, d *decoder) {
	d.inter = r.need("ffn_hidden_size")
	d.headDim = r.sizeOr(d.headDim, "kv_channels")
	if r.flag(false, "multi_query_attention") {
		d.kvHeads = r.need("multi_query_group_num")
	}
	even(r, d)
	d.oBias = r.flag(false, "add_bias_linear")
	d.mlpBias = d.oBias
	d.qkvBias = r.flag(false, "add_qkv_bias") || d.oBias
	d.lnBias = !r.flag(true, "rmsnorm")
	d.noFinal = !r.flag(true, "post_layer_norm")
}

func falcon(r *reader, d *decoder) {
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
		on(qkv, out, mlp)(r, d)
	}
}

// opt's table of positions has two more than it says.
func opt(r *reader, d *decoder) {
	d.inter = r.need("ffn_dim")
	d.positions = r.need("max_position_embeddings") + 2
	d.project = r.sizeOr(d.hidden, "word_embed_proj_dim")
	if r.flag(true, "enable_bias") {
		on(qkv, out, mlp)(r, d)
	}
	d.bareNorms = !r.flag(true, "layer_norm_elementwise_affine")
	d.noFinal = !r.flag(true, "do_layer_norm_before") || r.flag(false, "_remove_final_layer_norm")
}

func mpt(r *reader, d *decoder) {
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
		on(qkv, out, mlp)(r, d)
	}
	if hidden := int64(d.hidden) * int64(ratio); hidden > most {
		r.fail(bad(r.file, "check them", "a d_model of %d with an expansion_ratio of %d", d.hidden, ratio))
	} else {
		d.inter = int(hidden)
	}
	even(r, d)
}

// routed reads a mixture as DeepSeek's configs say it: the first layers are dense, and some experts are every token's.
func routed(r *reader, d *decoder) {
	if _, ok := r.get("n_routed_experts"); !ok &&
		(r.family == "deepseek" || r.family == "deepseek_v2" || r.family == "dots1") {
		return
	}
	e := &mixture{experts: r.need("n_routed_experts"), perToken: r.sizeOr(8, "num_experts_per_tok"),
		inter: r.need("moe_intermediate_size")}
	e.shared = e.inter * r.count(0, "n_shared_experts")
	first, freq := r.count(0, "first_k_dense_replace"), r.sizeOr(1, "moe_layer_freq")
	e.dense = d.each(r, func(layer int) bool { return layer < first || layer%freq != 0 })
	d.moe = e
}

// corrected is a router with a bias, where the config says how it picks experts.
func corrected(r *reader, d *decoder) {
	if r.text("topk_method") == "noaux_tc" {
		routerBias(r, d)
	}
}

func ernieExperts(r *reader, d *decoder) {
	e := &mixture{experts: r.need("moe_num_experts"), perToken: r.sizeOr(6, "moe_k"),
		inter: r.need("moe_intermediate_size"), routerBias: true,
		expertBias: d.mlpBias, sharedBias: d.mlpBias}
	e.shared = e.inter * r.count(2, "moe_num_shared_experts")
	start, step := r.count(1, "moe_layer_start_index"), r.sizeOr(1, "moe_layer_interval")
	end := d.layers - 1
	if raw, ok := r.get("moe_layer_end_index"); ok && string(raw) != "-1" {
		end = r.count(end, "moe_layer_end_index")
	}
	e.dense = d.each(r, func(i int) bool { return (i+1)%step != 0 || i < start || i > end })
	d.moe = e
}

func dbrx(r *reader, d *decoder) {
	d.kvHeads = r.sub("attn_config").sizeOr(1, "kv_n_heads")
	ffn := r.sub("ffn_config")
	d.inter = ffn.need("ffn_hidden_size")
	d.moe = &mixture{experts: ffn.need("moe_num_experts"), perToken: ffn.sizeOr(1, "moe_top_k"), inter: d.inter}
	r.fail(ffn.err)
}

// gptOSS has a bias everywhere, and a sink a head.
func gptOSS(r *reader, d *decoder) {
	d.moe.perToken = r.sizeOr(4, "num_experts_per_tok", "experts_per_token")
	d.sinks, d.moe.expertBias, d.moe.routerBias = d.heads, true, true
}

// llama4 has an expert for all beside the routed ones, and dense layers in between; three layers of four see a piece of
// the text.
func llama4(r *reader, d *decoder) {
	step := r.sizeOr(1, "interleave_moe_layer_step")
	only := r.numbers("moe_layers")
	d.moe = &mixture{experts: r.need("num_local_experts"), perToken: r.sizeOr(1, "num_experts_per_tok"), inter: d.inter,
		shared:     d.inter,
		denseInter: r.sizeOr(d.inter, "intermediate_size_mlp")}
	d.moe.dense = d.each(r, func(i int) bool {
		if len(only) > 0 {
			return !only[i]
		}
		return (i+1)%step != 0
	})
	r.slide(d, r.count(8192, "attention_chunk_size"), butEvery(4))
}
