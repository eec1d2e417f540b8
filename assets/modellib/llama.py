"""The llama architecture, as WebLLM calls it, and qwen2, which has biases and another name for one weight.

Weights, activations and cache have the shape's dtype. Sums and logits are float32.
"""

import math

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op

import kvcache
import linear
from graph import call
from sampler import Sampler


class Weight(nn.Module):
    """A parameter called weight, so that its full name is the one that MLC gives it."""

    def __init__(self, dtype, *shape):
        self.weight = nn.Parameter(shape, dtype)


class Attention(nn.Module):
    def __init__(self, s):
        heads, kv_heads, width = s["num_attention_heads"], s["num_key_value_heads"], s["head_dim"]
        rows = (heads + 2 * kv_heads) * width
        fused = Weight(s["dtype"], rows, s["hidden_size"])
        if s["attention_bias"]:
            fused.bias = nn.Parameter((rows,), s["dtype"])
        setattr(self, "c_attn" if s["model_type"] == "qwen2" else "qkv_proj", fused)
        self.o_proj = Weight(s["dtype"], s["hidden_size"], heads * width)

    @property
    def qkv(self):
        """The parameters of the fused product, in the order of its arguments."""
        fused = getattr(self, "c_attn", None) or self.qkv_proj
        return [fused.weight, *([fused.bias] if hasattr(fused, "bias") else [])]


class FeedForward(nn.Module):
    def __init__(self, s):
        self.gate_up_proj = Weight(s["dtype"], 2 * s["intermediate_size"], s["hidden_size"])
        self.down_proj = Weight(s["dtype"], s["hidden_size"], s["intermediate_size"])


class Layer(nn.Module):
    def __init__(self, s):
        self.self_attn = Attention(s)
        self.mlp = FeedForward(s)
        self.input_layernorm = Weight(s["dtype"], s["hidden_size"])
        self.post_attention_layernorm = Weight(s["dtype"], s["hidden_size"])


class Body(nn.Module):
    def __init__(self, s):
        self.embed_tokens = Weight(s["dtype"], s["vocab_size"], s["hidden_size"])
        self.layers = nn.ModuleList([Layer(s) for _ in range(s["num_hidden_layers"])])
        self.norm = Weight(s["dtype"], s["hidden_size"])


class Llama(nn.Module, Sampler):
    """The functions that WebLLM calls, one for each method; spec has their arguments."""

    def __init__(self, shape, variant):
        self.shape, self.variant = shape, variant
        self.model = Body(shape)
        if not shape["tie_word_embeddings"]:
            self.lm_head = Weight(shape["dtype"], shape["vocab_size"], shape["hidden_size"])

    def embed(self, input_ids):
        s = self.shape
        func = linear.embed(s["vocab_size"], s["hidden_size"], s["dtype"])
        return call(func, [input_ids, self.model.embed_tokens.weight], ((input_ids.shape[0], s["hidden_size"]), s["dtype"]))

    def prefill(self, input_embed, kv_cache):
        return self._forward(input_embed, kv_cache, None)

    def decode(self, input_embed, kv_cache):
        return self._forward(input_embed, kv_cache, 1)

    def _forward(self, x, cache, tokens):
        """Runs x, [1, tokens, hidden], through the layers; tokens is None where their number is not known yet."""
        s = self.shape
        hidden, inner, width = s["hidden_size"], s["intermediate_size"], s["head_dim"]
        heads, kv_heads, eps = s["num_attention_heads"], s["num_key_value_heads"], s["rms_norm_eps"]
        count, suffix, bias = x.shape[1], "_one" if tokens else "_many", s["attention_bias"]
        qkv_rows = (heads + 2 * kv_heads) * width

        def product(name, rows, columns, **fused):
            func = linear.product(self.variant["kernels"], name, rows, columns, s["dtype"], **fused)
            return lambda *args: call(func, args, ((1, count, rows), s["dtype"]))

        qkv = product("norm_qkv" + suffix, qkv_rows, hidden, tokens=tokens, eps=eps, bias=bias)
        merge = product("attention_out" + suffix, hidden, heads * width, tokens=tokens, residual=True)
        gate_up = product("norm_gate_up" + suffix, inner, hidden, tokens=tokens, eps=eps, gated=True)
        down = product("down" + suffix, hidden, inner, tokens=tokens, residual=True)
        for i, layer in enumerate(self.model.layers):
            fused = qkv(x, layer.input_layernorm.weight, *layer.self_attn.qkv)
            fused = op.reshape(fused, (1, count, heads + 2 * kv_heads, width))
            mixed = cache.attention_with_fused_qkv(i, fused, heads, 1.0 / math.sqrt(width))
            mixed = op.reshape(mixed, (1, count, heads * width))
            x = merge(mixed, layer.self_attn.o_proj.weight, x)
            up = gate_up(x, layer.post_attention_layernorm.weight, layer.mlp.gate_up_proj.weight)
            x = down(up, layer.mlp.down_proj.weight, x)
        head = self.model.embed_tokens if s["tie_word_embeddings"] else self.lm_head
        logits = linear.product(self.variant["kernels"], "norm_logits", s["vocab_size"], hidden, s["dtype"], eps=eps, last=True)
        return call(logits, [x, self.model.norm.weight, head.weight], (1, 1, s["vocab_size"])), cache

    def create_tir_paged_kv_cache(self, max_num_sequence, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window):
        return kvcache.create(
            self.shape, self.variant, max_num_sequence, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window)

    def spec(self):
        s, tensor = self.shape, nn.spec.Tensor
        hidden = s["hidden_size"]
        cache = nn.spec.Object(object_type=kvcache.PagedKVCache)
        weights, bare = {"$": {"param_mode": "packed", "effect_mode": "none"}}, {"$": {"param_mode": "none", "effect_mode": "none"}}
        return nn.spec.ModuleSpec.from_raw({
            "embed": {"input_ids": tensor(["seq_len"], "int32"), **weights},
            "prefill": {"input_embed": tensor([1, "seq_len", hidden], s["dtype"]), "kv_cache": cache, **weights},
            "decode": {"input_embed": tensor([1, 1, hidden], s["dtype"]), "kv_cache": cache, **weights},
            "create_tir_paged_kv_cache": {name: int for name in (
                "max_num_sequence", "max_total_seq_len", "prefill_chunk_size", "page_size", "support_sliding_window")} | bare,
            **self.sampling_spec(),
        }, self)
