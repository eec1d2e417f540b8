"""The llama architecture in float32, as the page's engine calls it."""

import math

from tvm import tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op

import kvcache
import linear
import sampling


class Weight(nn.Module):
    """A parameter called weight, so that its full name is the one that MLC gives it."""

    def __init__(self, *shape):
        self.weight = nn.Parameter(shape, "float32")


class Attention(nn.Module):
    def __init__(self, s):
        heads, kv_heads, width = s["num_attention_heads"], s["num_key_value_heads"], s["head_dim"]
        self.qkv_proj = Weight((heads + 2 * kv_heads) * width, s["hidden_size"])
        self.o_proj = Weight(s["hidden_size"], heads * width)


class FeedForward(nn.Module):
    def __init__(self, s):
        self.gate_up_proj = Weight(2 * s["intermediate_size"], s["hidden_size"])
        self.down_proj = Weight(s["hidden_size"], s["intermediate_size"])


class Layer(nn.Module):
    def __init__(self, s):
        self.self_attn = Attention(s)
        self.mlp = FeedForward(s)
        self.input_layernorm = Weight(s["hidden_size"])
        self.post_attention_layernorm = Weight(s["hidden_size"])


class Body(nn.Module):
    def __init__(self, s):
        self.embed_tokens = Weight(s["vocab_size"], s["hidden_size"])
        self.layers = nn.ModuleList([Layer(s) for _ in range(s["num_hidden_layers"])])
        self.norm = Weight(s["hidden_size"])


class Llama(nn.Module):
    """The functions that the page's engine looks up; each method is one, spec says with which arguments."""

    def __init__(self, shape):
        self.shape = shape
        self.model = Body(shape)
        if not shape["tie_word_embeddings"]:
            self.lm_head = Weight(shape["vocab_size"], shape["hidden_size"])

    def embed(self, input_ids):
        s = self.shape
        func = linear.embed(s["vocab_size"], s["hidden_size"])
        return call(func, [input_ids, self.model.embed_tokens.weight], (input_ids.shape[0], s["hidden_size"]))

    def prefill(self, input_embed, kv_cache):
        return self._forward(input_embed, kv_cache, None)

    def decode(self, input_embed, kv_cache):
        return self._forward(input_embed, kv_cache, 1)

    def _forward(self, x, cache, tokens):
        """Runs x, [1, tokens, hidden], through the layers; tokens is None where their number is not known yet."""
        s = self.shape
        hidden, inner, width = s["hidden_size"], s["intermediate_size"], s["head_dim"]
        heads, kv_heads, eps = s["num_attention_heads"], s["num_key_value_heads"], s["rms_norm_eps"]
        count, suffix = x.shape[1], "_one" if tokens else "_many"
        qkv_rows = (heads + 2 * kv_heads) * width
        qkv = linear.product("norm_qkv" + suffix, qkv_rows, hidden, tokens=tokens, eps=eps)
        merge = linear.product("attention_out" + suffix, hidden, heads * width, tokens=tokens, residual=True)
        gate_up = linear.product("norm_gate_up" + suffix, inner, hidden, tokens=tokens, eps=eps, gated=True)
        down = linear.product("down" + suffix, hidden, inner, tokens=tokens, residual=True)
        for i, layer in enumerate(self.model.layers):
            fused = call(qkv, [x, layer.input_layernorm.weight, layer.self_attn.qkv_proj.weight], (1, count, qkv_rows))
            fused = op.reshape(fused, (1, count, heads + 2 * kv_heads, width))
            mixed = cache.attention_with_fused_qkv(i, fused, heads, 1.0 / math.sqrt(width))
            mixed = op.reshape(mixed, (1, count, heads * width))
            x = call(merge, [mixed, layer.self_attn.o_proj.weight, x], (1, count, hidden))
            up = call(gate_up, [x, layer.post_attention_layernorm.weight, layer.mlp.gate_up_proj.weight], (1, count, inner))
            x = call(down, [up, layer.mlp.down_proj.weight, x], (1, count, hidden))
        head = self.model.embed_tokens if s["tie_word_embeddings"] else self.lm_head
        logits = linear.product("norm_logits", s["vocab_size"], hidden, eps=eps, last=True)
        return call(logits, [x, self.model.norm.weight, head.weight], (1, 1, s["vocab_size"])), cache

    def create_tir_paged_kv_cache(self, max_num_sequence, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window):
        return kvcache.create(
            self.shape, max_num_sequence, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window)

    def softmax_with_temperature(self, logits, temperature):
        vocab, n = self.shape["vocab_size"], logits.shape[0]
        func, chunks = sampling.chunk_softmax(vocab)
        peak, total = call(func, [logits, temperature], (n, chunks), (n, chunks))
        return call(sampling.finish_softmax(vocab), [logits, temperature, peak, total], (n, 1, vocab))

    def argsort_probs(self, probs):
        vocab, n = self.shape["vocab_size"], probs.shape[0]
        out = (n, vocab), ((n, vocab), "int32")
        probs, tokens = call(sampling.sort_pass(vocab, True), [probs], *out)
        again = sampling.sort_pass(vocab, False)
        for length in sampling.sort_lengths(vocab, sampling.fan_of(vocab)):
            probs, tokens = call(again, [probs, tokens, tirx.IntImm("int64", length)], *out)
        return probs, tokens

    def sample_with_top_p(self, sorted_probs, sorted_indices, uniform_samples, sample_indices, top_p):
        func = sampling.nucleus(self.shape["vocab_size"])
        args = [sorted_probs, sorted_indices, uniform_samples, sample_indices, top_p]
        return call(func, args, ((uniform_samples.shape[0],), "int32"))

    def apply_logit_bias_inplace(self, logits, pos2seq_id, token_ids, logit_bias):
        return edit(sampling.add_bias(self.shape["vocab_size"]), [logits, pos2seq_id, token_ids, logit_bias])

    def apply_penalty_inplace(self, logits, seq_ids, pos2seq_id, token_ids, token_cnt, penalties):
        return edit(sampling.punish(self.shape["vocab_size"]), [logits, seq_ids, pos2seq_id, token_ids, token_cnt, penalties])

    def apply_bitmask_inplace(self, logits, seq_ids, bitmask):
        return edit(sampling.mask(self.shape["vocab_size"]), [logits, seq_ids, bitmask])

    def spec(self):
        s, tensor = self.shape, nn.spec.Tensor
        hidden, vocab = s["hidden_size"], s["vocab_size"]
        cache = nn.spec.Object(object_type=kvcache.PagedKVCache)
        weights, bare = {"$": {"param_mode": "packed", "effect_mode": "none"}}, {"$": {"param_mode": "none", "effect_mode": "none"}}
        logits, sequences, tokens = tensor(["n", vocab], "float32"), tensor(["sequences"], "int32"), tensor(["count"], "int32")
        return nn.spec.ModuleSpec.from_raw({
            "embed": {"input_ids": tensor(["seq_len"], "int32"), **weights},
            "prefill": {"input_embed": tensor([1, "seq_len", hidden], "float32"), "kv_cache": cache, **weights},
            "decode": {"input_embed": tensor([1, 1, hidden], "float32"), "kv_cache": cache, **weights},
            "create_tir_paged_kv_cache": {name: int for name in (
                "max_num_sequence", "max_total_seq_len", "prefill_chunk_size", "page_size", "support_sliding_window")} | bare,
            "softmax_with_temperature": {
                "logits": tensor(["n", 1, vocab], "float32"), "temperature": tensor(["n"], "float32"), **bare},
            "argsort_probs": {"probs": tensor(["n", vocab], "float32"), **bare},
            "sample_with_top_p": {
                "sorted_probs": tensor(["n", vocab], "float32"), "sorted_indices": tensor(["n", vocab], "int32"),
                "uniform_samples": tensor(["samples"], "float32"), "sample_indices": tensor(["samples"], "int32"),
                "top_p": tensor(["n"], "float32"), **bare},
            "apply_logit_bias_inplace": {
                "logits": logits, "pos2seq_id": tokens, "token_ids": tokens, "logit_bias": tensor(["count"], "float32"), **bare},
            "apply_penalty_inplace": {
                "logits": logits, "seq_ids": sequences, "pos2seq_id": tokens, "token_ids": tokens, "token_cnt": tokens,
                "penalties": tensor(["sequences", 3], "float32"), **bare},
            "apply_bitmask_inplace": {
                "logits": logits, "seq_ids": sequences, "bitmask": tensor(["n", (vocab + 31) // 32], "int32"), **bare},
        }, self)


def call(func, args, *outputs):
    """Calls a kernel; an output is a shape, float32, or a pair of shape and dtype."""
    outputs = [o if isinstance(o[0], tuple) else (o, "float32") for o in outputs]
    out = [nn.Tensor.placeholder(shape, dtype) for shape, dtype in outputs]
    return op.tensor_ir_op(func, func.attrs["global_symbol"], args, out[0] if len(out) == 1 else out)


def edit(func, args):
    """Calls a kernel that changes its first argument."""
    return op.tensor_ir_inplace_op(
        func, func.attrs["global_symbol"], args, 0, nn.Tensor.placeholder(args[0].shape, args[0].dtype))
