package depth

import "regexp"

// roles finds the role of a kernel, module or function by its name. The first that matches counts: a projection in
// attention is attention's.
var roles = []struct {
	Role
	names *regexp.Regexp
}{
	{Wait, regexp.MustCompile(`(?i)barrier|futex|epoll|cond_?wait|sched_yield|__poll|nanosleep`)},
	// Kernels that do several things count as the most expensive of them.
	{Attention, regexp.MustCompile(`(?i)norm_qkv`)},
	{FeedForward, regexp.MustCompile(`(?i)norm_gate|norm_up`)},
	{Head, regexp.MustCompile(`(?i)norm_logits|lm_?head|result_output|unembed`)},
	{Sampling, regexp.MustCompile(`(?i)sampl|argmax|arg_max|top_?[kp]\b|multinomial|softmax_(finish|groups|chunk|with)|rank_|penalt|punish|renorm|` +
		`argsort|nucleus|find_peaks|place_tokens|sort_pass`)},
	{KVWrite, regexp.MustCompile(`(?i)kv_?(cache|append)|set_?rows|transpose_append|copykv|cache_[kv]|[kv]_cache|scatterelements`)},
	{Norm, regexp.MustCompile(`(?i)norm`)},
	{Head, regexp.MustCompile(`(?i)logits`)},
	{Embedding, regexp.MustCompile(`(?i)embed_|embd|get_?rows|^embedding|gather|take\d*$`)},
	{Attention, regexp.MustCompile(`(?i)attn|atten|flash|qkv|[qkvo]_proj|c_attn|mixer|rope|rotary|rotate|soft_?max|kqv?|[qkv]cur|merge_state`)},
	{FeedForward, regexp.MustCompile(`(?i)mlp|ffn|feed_?forward|gate|(up|down)_(proj|one|many)|silu|gelu|swiglu|glu\b`)},
	{Matrix, regexp.MustCompile(`(?i)mul_?mat|mat_?mul|gemm|gemv|vec_dot|dequant|addmm|bmm|::mm\b|linear`)},
	{Copy, regexp.MustCompile(`(?i)cop(y|ies)|cpy|memmove|memset|concat|clone|contiguous|transpose|reshape|slice|cast|expand|fill`)},
}

// RoleOf returns the role that a name tells.
func RoleOf(name string) Role {
	for _, r := range roles {
		if r.names.MatchString(name) {
			return r.Role
		}
	}
	return Other
}
