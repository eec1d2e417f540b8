package hfconfig

import "slices"

// families has the rules that read the sizes of each model_type. Defaults are those of transformers' configuration
// classes, because published configs rely on them.
var families = map[string][]rule{
	"llama": {llama}, "yi": {llama}, "Yi": {llama}, "aquila": {llama}, "helium": {llama}, "granite": {llama},
	"baichuan": {bare}, "exaone": {bare},
	"mistral":          {bare, slides(4096, every)},
	"ministral":        {bare, slides(4096, every)},
	"ministral3":       {bare, slides(0, every)},
	"mixtral":          {bare, experts(2, "num_local_experts"), slides(0, every)},
	"arcee":            {llama, on(plainMLP)},
	"smollm3":          {llama, tied, when("use_sliding_window", false, slides(0, every))},
	"minicpm":          {bare, tied},
	"internlm":         {bare, on(qkv, out), reads("bias", qkv, out)},
	"internlm2":        {bare, reads("bias", qkv, out)},
	"internlm3":        {llama, reads("qkv_bias", qkv), reads("bias", out, mlp)},
	"seed_oss":         {llama, on(qkv), reads("attention_bias", qkv), off(out), reads("attention_out_bias", out)},
	"hunyuan_v1_dense": {llama, off(mlp), perHead},
	"ernie4_5":         {bare, tied, reads("use_bias", qkv, out, mlp)},

	"qwen":  {bare, qwen, on(qkv)},
	"qwen2": {bare, on(qkv), qwenWindow},
	"qwen2_moe": {defaults{"intermediate_size": 5632}.rule, bare, on(qkv), reads("qkv_bias", qkv),
		experts(4, "num_experts"), narrow, qwenShared, qwenDense, qwenWindow},
	"qwen3": {defaults{"head_dim": 128}.rule, llama, off(mlp), perHead, qwenWindow},
	"qwen3_moe": {defaults{"intermediate_size": 6144}.rule, llama, off(mlp), perHead,
		experts(8, "num_experts", "num_local_experts"), narrow, qwenDense, qwenWindow},

	"gemma":  {defaults{"head_dim": 256}.rule, llama, tied, off(mlp)},
	"gemma2": {defaults{"head_dim": 256}.rule, llama, tied, off(mlp), norms(4), slides(4096, butEvery(2))},
	"gemma3": gemma3, "gemma3_text": gemma3,

	"phi": {layerNormed, inner("intermediate_size", "n_inner"), norms(1), on(head, qkv, out, mlp),
		when("qk_layernorm", false, perHead, perHead)}, // scales and biases
	"phi3": {bare, slides(0, every)},
	"phimoe": {llama, off(mlp), on(norm), reads("lm_head_bias", head), experts(2, "num_local_experts"),
		slides(0, every)},
	"stablelm":       stableLM,
	"stablelm_epoch": stableLM,
	"olmo":           {llama, off(mlp), on(bareNorms)},
	// olmo2 normalises queries and keys over all heads
	"olmo2":            {llama, off(mlp), overHeads},
	"olmo3":            {llama, off(mlp), overHeads, slides(4096, butEvery(4))},
	"olmoe":            {llama, off(mlp), overHeads, experts(8, "num_experts")},
	"cohere":           {llama, tied, off(mlp), norms(1), when("use_qk_norm", false, overHeads)},
	"cohere2":          {llama, tied, off(mlp), norms(1), slidesBut(4)},
	"nemotron":         {llama, on(norm, plainMLP)},
	"granitemoe":       {llama, off(mlp), experts(2, "num_local_experts"), graniteShared},
	"granitemoeshared": {llama, off(mlp), experts(2, "num_local_experts"), graniteShared},
	"gpt_oss": {defaults{"head_dim": 64}.rule, bare, on(qkv, out), reads("attention_bias", qkv, out),
		experts(4, "num_local_experts"), gptOSS, slides(128, butEvery(2))},
	"llama4_text": {llama, off(mlp), llama4},

	"deepseek":    {llama, off(mlp), routed, corrected},
	"deepseek_v2": {base, intermediate, latentHeads, even, reads("attention_bias", out), routed, corrected},
	"deepseek_v3": deepseekV3, "kimi_k2": deepseekV3,
	"glm":      {defaults{"head_dim": 128}.rule, llama, on(qkv), reads("attention_bias", qkv), off(out, mlp)},
	"glm4":     {defaults{"head_dim": 128}.rule, llama, on(qkv), reads("attention_bias", qkv), off(out, mlp), norms(4)},
	"glm4_moe": {llama, off(out, mlp), when("use_qk_norm", false, perHead), routed, routerBias},
	"dots1":    {llama, off(mlp), perHead, routed, routerBias},
	"chatglm":  {base, chatGLM},

	"gpt2":        gpt2,
	"gpt_bigcode": append(slices.Clone(gpt2), when("multi_query", true, oneKVHead)),
	// gpt_neo has a window in every other layer, but caches all tokens
	"gpt_neo":  {layerNormed, tied, inner("intermediate_size"), positions("max_position_embeddings"), on(out, mlp)},
	"gpt_neox": {layerNormed, intermediate, on(qkv, out), reads("attention_bias", qkv, out), on(mlp)},
	"gptj":     {layerNormed, inner("n_inner"), norms(1), on(mlp, head)},
	"codegen":  {layerNormed, inner("n_inner"), norms(1), on(mlp, head)},
	"falcon":   {layerNormed, tied, falcon}, "RefinedWebModel": {layerNormed, tied, falcon},
	"RefinedWeb": {layerNormed, tied, falcon},
	"opt":        {layerNormed, tied, opt},
	"bloom":      {layerNormed, tied, on(embedNorm, qkv, out, mlp)},
	"mpt":        {layerNormed, tied, mpt},
	"starcoder2": {layerNormed, tied, intermediate, on(qkv, out, mlp), reads("use_bias", qkv, out, mlp),
		slides(0, every)},
}

// Families with several names, or that others extend.
var (
	// gemma3's larger configs have only what differs from the class's defaults.
	gemma3 = []rule{defaults{"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4,
		"head_dim": 256}.rule, llama, tied, off(mlp), norms(4), perHead, slidesBut(6)}
	stableLM = []rule{bare, on(norm), reads("use_qkv_bias", qkv), when("use_parallel_residual", false, norms(1)),
		when("qk_layernorm", false, overHeads)}
	deepseekV3 = []rule{base, intermediate, latentHeads, even, reads("attention_bias", out), routed,
		routerBias}
	gpt2 = []rule{layerNormed, tied, inner("n_inner"), positions("n_positions", "n_ctx", "max_position_embeddings"),
		on(qkv, out, mlp)}
)

// aliases maps the model_types of multimodal models to those of their text parts.
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
