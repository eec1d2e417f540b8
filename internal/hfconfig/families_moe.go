package hfconfig

// routed reads a mixture as DeepSeek's configs say it: the first layers are dense, and some experts are every token's.
func (r *reader) routed(d *decoder) *mixture {
	if _, ok := r.get("n_routed_experts"); !ok &&
		(r.family == "deepseek" || r.family == "deepseek_v2" || r.family == "dots1") {
		return nil
	}
	e := &mixture{experts: r.need("n_routed_experts"), perToken: r.sizeOr(8, "num_experts_per_tok"),
		inter: r.need("moe_intermediate_size")}
	e.shared = e.inter * r.count(0, "n_shared_experts")
	first, freq := r.count(0, "first_k_dense_replace"), r.sizeOr(1, "moe_layer_freq")
	e.dense = d.each(r, func(layer int) bool { return layer < first || layer%freq != 0 })
	return e
}

// deepseek has latent attention from version 2 on.
func deepseek(r *reader) decoder {
	d := r.base(false)
	d.inter = r.need("intermediate_size")
	if r.family != "deepseek" {
		d.mla = &latent{qRank: r.count(0, "q_lora_rank"), kvRank: r.need("kv_lora_rank"),
			rope: r.need("qk_rope_head_dim"), nope: r.need("qk_nope_head_dim"),
			bias: r.flag(false, "attention_bias")}
		d.headDim = d.mla.nope + d.mla.rope
		d.valueDim = r.need("v_head_dim")
		d.oBias = d.mla.bias
	} else {
		d.qkvBias = r.flag(false, "attention_bias")
		d.oBias = d.qkvBias
	}
	r.evenly(&d)
	if d.moe = r.routed(&d); d.moe != nil &&
		(r.text("topk_method") == "noaux_tc" || r.family == "deepseek_v3" || r.family == "kimi_k2") {
		d.moe.routerBias = true // e_score_correction_bias
	}
	return d
}

func ernieMoE(r *reader) decoder {
	d := ernie(r)
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
	return d
}

func phiMoE(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias, d.lnBias = false, true
	d.headBias = r.flag(false, "lm_head_bias")
	d.moe = &mixture{experts: r.need("num_local_experts"), perToken: r.sizeOr(2, "num_experts_per_tok"), inter: d.inter}
	r.slide(&d, r.window(0), every)
	return d
}

func olmoe(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias = false
	d.qkNorm = (d.heads + d.kvHeads) * d.headDim
	d.moe = &mixture{experts: r.need("num_experts"), perToken: r.sizeOr(8, "num_experts_per_tok"), inter: d.inter}
	return d
}

func graniteMoE(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias = false
	d.moe = &mixture{experts: r.need("num_local_experts"), perToken: r.sizeOr(2, "num_experts_per_tok"), inter: d.inter,
		shared: r.count(0, "shared_intermediate_size")}
	return d
}

func dbrx(r *reader) decoder {
	d := r.base(false)
	d.kvHeads = r.sub("attn_config").sizeOr(1, "kv_n_heads")
	ffn := r.sub("ffn_config")
	d.inter = ffn.need("ffn_hidden_size")
	d.moe = &mixture{experts: ffn.need("moe_num_experts"), perToken: ffn.sizeOr(1, "moe_top_k"), inter: d.inter}
	r.fail(ffn.err)
	r.evenly(&d)
	return d
}

// gptOSS has a bias everywhere, and a sink a head.
func gptOSS(r *reader) decoder {
	d := r.base(false)
	d.inter = r.need("intermediate_size")
	d.headDim = r.sizeOr(64, "head_dim")
	r.evenly(&d)
	d.qkvBias = r.flag(true, "attention_bias")
	d.oBias = d.qkvBias
	d.sinks = d.heads
	d.moe = &mixture{experts: r.need("num_local_experts"),
		perToken: r.sizeOr(4, "num_experts_per_tok", "experts_per_token"), inter: d.inter,
		expertBias: true, routerBias: true}
	r.slide(&d, r.window(128), butEvery(2))
	return d
}

// llama4 has an expert for all beside the routed ones, and dense layers in between; three layers of four see a piece of
// the text.
func llama4(r *reader) decoder {
	d := r.llama(false)
	d.mlpBias = false
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
	r.slide(&d, r.count(8192, "attention_chunk_size"), butEvery(4))
	return d
}
