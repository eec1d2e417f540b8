"""The architectures as WebLLM calls them. What they differ in are fields of the shape, and the names of their parameters.

Weights, activations and cache have the shape's dtype. Sums and logits are float32.
"""

import math
from types import SimpleNamespace

from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op

import kvcache
import linear
import names
import norms
import rotation
from graph import call
from matrix import Matrix
from sampler import Sampler
from shape import cache_dtype


class Tree(nn.Module):
    """A level of the parameters' names."""

    def plant(self, path, dtype, *shape):
        """Adds a parameter under a name with dots, and returns it."""
        at, _, rest = path.partition(".")
        if not rest:
            setattr(self, at, nn.Parameter(shape, dtype))
            return getattr(self, at)
        if at not in self.__dict__:
            setattr(self, at, Tree())
        return getattr(self, at).plant(rest, dtype, *shape)


def flat(args):
    """Arguments with the parameters of matrices in their place."""
    return [part for arg in args for part in (arg.tensors if isinstance(arg, Matrix) else [arg])]


class Decoder(Tree, Sampler):
    """The functions that WebLLM calls, one for each method; spec has their arguments."""

    vocabulary = None  # the tables' rows; None: as the shape says

    def __init__(self, shape, variant):
        self.shape, self.variant = shape, variant
        vocabulary = self.vocabulary or shape["vocab_size"]
        n, hidden = names.OF[shape["model_type"]], shape["hidden_size"]
        self.parts = parts = SimpleNamespace()  # which hides that they are parameters, so that each has one name
        parts.embedding = self._matrix(f"{n.root}.{n.embedding}", hidden, vocabulary)
        parts.layers = [self._layer(n, f"{n.root}.{n.layers}.{i}") for i in range(shape["num_hidden_layers"])]
        parts.gain = self._weight(f"{n.root}.norm", hidden)
        parts.head = parts.embedding if shape["tie_word_embeddings"] else self._matrix(n.head, hidden, vocabulary)

    def _weight(self, path, *shape, kind="weight"):
        return self.plant(f"{path}.{kind}", self.shape["dtype"], *shape)

    def _matrix(self, path, columns, *rows):
        return Matrix.planted(self, self.shape, path, columns, *rows)

    def _layer(self, n, at):
        s, layer = self.shape, SimpleNamespace()
        hidden, inner, width = s["hidden_size"], s["intermediate_size"], s["head_dim"]
        each = [s["num_attention_heads"] * width, *[s["num_key_value_heads"] * width] * 2]
        layer.queries = []
        for name, rows in zip(n.queries, zip(each) if len(n.queries) > 1 else [each]):
            path = f"{at}.{n.attention}.{name}"
            bias = [self._weight(path, sum(rows), kind="bias")] if s["attention_bias"] else []
            layer.queries.append([self._matrix(path, hidden, *rows), *bias])
        layer.out = self._matrix(f"{at}.{n.attention}.{n.out}", each[0], hidden)
        if s["qk_norm"]:
            layer.head_gains = [self._weight(f"{at}.{n.attention}.{name}_norm", width) for name in "qk"]
        layer.gate_up = self._matrix(f"{at}.mlp.gate_up_proj", hidden, inner, inner)
        layer.down = self._matrix(f"{at}.mlp.down_proj", inner, hidden)
        layer.first_gain = self._weight(f"{at}.{n.first_norm}", hidden)
        after = self._weight(f"{at}.post_attention_layernorm", hidden)  # MLC's name for two different norms
        layer.second_gain = self._weight(f"{at}.pre_feedforward_layernorm", hidden) if s["post_norms"] else after
        layer.post_gains = [after, self._weight(f"{at}.post_feedforward_layernorm", hidden)] if s["post_norms"] else [None] * 2
        return layer

    def embed(self, input_ids):
        s, table = self.shape, self.parts.embedding
        func = linear.embed(table.parts, s["hidden_size"], s["dtype"], s["embedding_scale"])
        return call(func, [input_ids, *table.tensors], ((input_ids.shape[0], s["hidden_size"]), s["dtype"]))

    def prefill(self, input_embed, kv_cache):
        return self._forward(input_embed, kv_cache, None)

    def decode(self, input_embed, kv_cache):
        return self._forward(input_embed, kv_cache, 1)

    def batch_verify(self, input_embeds, paged_kv_cache):
        """The logits of every token, under the name that MLC's libraries have for it. WebLLM does not call it."""
        return self._forward(input_embeds, paged_kv_cache, None, every=True)

    def _forward(self, x, cache, tokens, every=False):
        """Runs x, [1, tokens, hidden], through the layers; tokens is None where their number is not known yet. The logits are those
        of the last token, or of every one."""
        s = self.shape
        hidden, inner, eps, heads = s["hidden_size"], s["intermediate_size"], s["rms_norm_eps"], s["num_attention_heads"]
        count, suffix, kernels = x.shape[1], "_one" if tokens else "_many", self.variant["kernels"]
        apart = not tokens and kernels != "gpu"  # norms are kernels of their own
        norm = norms.rows(kernels, "norm_many", hidden, s["dtype"], eps)

        def normed(x, gain):
            """The first arguments of products that begin with a norm."""
            return [call(norm, [x, gain], ((1, count, hidden), s["dtype"]))] if apart else [x, gain]

        def product(name, rows, columns, norm=False, **fused):
            name, fused["eps"] = (f"norm_{name}", eps) if norm and not apart else (name, None)

            def apply(*args):
                parts = next(arg.parts for arg in args if isinstance(arg, Matrix))
                func = linear.product(kernels, name + suffix, parts, columns, s["dtype"], tokens=tokens, **fused)
                return call(func, flat(args), ((1, count, rows), s["dtype"]))

            return apply

        queries = self._queries(product, normed, cache, count, suffix)
        merge = product("attention_out", hidden, heads * s["head_dim"], residual=not s["post_norms"],
                        source=cache_dtype(s))
        gate_up = product("gate_up", inner, hidden, norm=True, gated="gelu" if s["gelu"] else "silu")
        down = product("down", hidden, inner, residual=not s["post_norms"])
        add = norms.rows(kernels, "add_norm" + suffix, hidden, s["dtype"], eps, residual=True)

        def join(func, source, weight, gain, x):
            """Adds a product to x, normalised by itself where the model has such a norm."""
            if gain is None:
                return func(source, weight, x)
            return call(add, [func(source, weight), gain, x], ((1, count, hidden), s["dtype"]))

        for i, layer in enumerate(self.parts.layers):
            mixed = cache.attention_with_fused_qkv(i, queries(i, layer, x), heads, self._score_scale(i))
            mixed = op.reshape(mixed, (1, count, heads * s["head_dim"]))
            x = join(merge, mixed, layer.out, layer.post_gains[0], x)
            x = join(down, gate_up(*normed(x, layer.second_gain), layer.gate_up), layer.down, layer.post_gains[1], x)
        head = self.parts.head
        arguments = normed(x, self.parts.gain) if every else [x, self.parts.gain]
        logits = linear.product(kernels, "logits_every" if every else "norm_logits", head.parts, hidden, s["dtype"], last=not every,
                                eps=None if every and apart else eps, every=every, cap=s["final_logit_softcapping"])
        return call(logits, [*arguments, *head.tensors], (1, count if every else 1, s["vocab_size"])), cache

    def _queries(self, product, normed, cache, count, suffix):
        """A function that computes a layer's queries, keys and values, [1, tokens, heads, width]."""
        s = self.shape
        kv_heads, width, hidden = s["num_key_value_heads"], s["head_dim"], s["hidden_size"]
        heads = s["num_attention_heads"] + 2 * kv_heads
        fused = {"norm": True, "bias": s["attention_bias"]}
        single = len(self.parts.layers[0].queries) == 1
        if single:
            products = [product("qkv", heads * width, hidden, **fused)]
        else:
            one = product("kv", kv_heads * width, hidden, **fused)
            products = [product("q", s["num_attention_heads"] * width, hidden, **fused), one, one]
        shape = (1, count, heads, width)
        if not rotation.before_cache(s):
            return lambda _, layer, x: op.reshape(products[0](*normed(x, layer.first_gain), *layer.queries[0]), shape)
        func = norms.heads(self.variant["kernels"], "norm_rotate" + suffix, s, single)
        positions = cache.get_query_positions(count)
        tables = [nn.Tensor(_expr=relax.const(rotation.table(s, local))) for local in (False, True)]

        def prepared(i, layer, x):
            x = normed(x, layer.first_gain)
            parts = [p(*x, *weights) for p, weights in zip(products, layer.queries)]
            gains = layer.head_gains if s["qk_norm"] else []
            return call(func, [*parts, *gains, positions, tables[i in s["local_layers"]]], (shape, cache_dtype(s)))

        return prepared

    def _score_scale(self, layer):
        """The factor of a layer's scores. It is all that the cache passes from a layer to the attention kernels, so its sign says
        which layers see only the window, where not all do."""
        scale = 1 / math.sqrt(self.shape["query_pre_attn_scalar"] or self.shape["head_dim"])
        return -scale if layer in self.shape["local_layers"] else scale

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
            "batch_verify": {"input_embeds": tensor([1, "verify_len", hidden], s["dtype"]), "paged_kv_cache": cache, **weights},
            "create_tir_paged_kv_cache": {name: int for name in (
                "max_num_sequence", "max_total_seq_len", "prefill_chunk_size", "page_size", "support_sliding_window")} | bare,
            **self.sampling_spec(),
        }, self)
