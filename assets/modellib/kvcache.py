"""The paged KV cache: TVM's own cache object, with kernels of ours.

It supports what WebLLM uses: one sequence, its whole context, pages of 16 tokens. The attention kernels handle a model's window.
Other kernels of TVM's cache (sliding windows, token trees, page copies, debugging) are absent, because every shader costs load
time; calling one is an error.
"""

import tvm
from tvm import relax
from tvm.relax.frontend.nn.llm.kv_cache import AttnKind, PagedKVCache, RopeMode

import attention
import rotation
from attention import PAGE
from schedule import T, kernel, when
from shape import cache_dtype


def create(shape, variant, sequences, tokens, chunk, page, window):
    """The cache, as an expression of the function that the page calls; the last five are sizes known at run time."""
    heads, kv_heads, width = shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"]
    layers, theta, kernels = shape["num_hidden_layers"], shape["rope_theta"], variant["kernels"]

    def add(func):
        return relax.BlockBuilder.current().add_func(func, func.attrs["global_symbol"])

    def attend(arguments):
        return relax.Tuple([tvm.ir.StringImm("tirx"), add(attention.attend(kernels, shape, arguments))])

    none, absent = relax.Tuple([]), relax.ExternFunc("llmparity.kernel_left_out")
    return PagedKVCache(
        _expr=relax.call_pure_packed(
            "vm.builtin.paged_attention_kv_cache_create",
            relax.ShapeExpr([sequences, tokens, chunk, page, window]),
            relax.ShapeExpr([0, layers]),
            *(relax.prim_value(v) for v in (heads, kv_heads, width, width)),
            relax.ShapeExpr([int(AttnKind.MHA)] * layers),
            relax.prim_value(False),  # no transfer between machines
            relax.prim_value(int(RopeMode.NONE if rotation.before_cache(shape) else RopeMode.NORMAL)),
            relax.prim_value(1.0),
            relax.prim_value(float(theta)),
            relax.prim_value(0) if rotation.before_cache(shape) else relax.const(rotation.table(shape)),
            relax.op.builtin.alloc_tensor(relax.ShapeExpr([]), cache_dtype(shape), 0),  # for its dtype and device
            add(append(shape)),
            relax.prim_value(0),  # no latent attention
            *(attend(a) for a in (attention.New, attention.Cached, attention.Decoded)),
            *[none] * 5,  # prefill and decode with a sliding window, two kernels for token trees, latent attention
            relax.Tuple([add(attention.merge(kernels, shape))]),
            add(split(shape)),
            *[absent] * 3,  # copy a page, read the cache back, compact it
            ty_args=relax.AnyType(),
        ),
        _name="kv_cache",
    )


def split(shape):
    """Splits a token's fused row into queries, keys and values, and rotates the first two by the token's position unless that has
    been done."""
    heads, kv_heads, width, dtype = (
        shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"], cache_dtype(shape))

    def body(k):
        n = k.size("n")
        fused = k.tensor("fused", (n, heads + 2 * kv_heads, width), dtype)
        positions = k.tensor("positions", (n,), "int32", offset=True)
        q = k.tensor("q", (n, heads, width), dtype)
        key = k.tensor("key", (n, kv_heads, width), dtype)
        value = k.tensor("value", (n, kv_heads, width), dtype)
        if rotation.before_cache(shape):
            k.scalar("rotate", "int64")
            with k.threads((heads + 2 * kv_heads) * width, n) as (at, t):
                head, i = at // width, at % width
                with when(head < heads):
                    q.set(fused(t, head, i), t, head, i)
                with when(tvm.tirx.all(head >= heads, head < heads + kv_heads)):
                    key.set(fused(t, head, i), t, head - heads, i)
                with when(head >= heads + kv_heads):
                    value.set(fused(t, head, i), t, head - heads - kv_heads, i)
            return
        turning = rotation.Rotation(k, shape)
        with k.threads((heads + 2 * kv_heads) * (width // 2), n) as (at, t):
            head, i = at // (width // 2), at % (width // 2)
            places = turning.pair(i)
            kept = [fused(t, head, place) for place in places]
            turned = rotation.turn(*kept, *turning.angle(positions(t), i))
            with when(head < heads):
                for v, place in zip(turned, places):
                    q.set(v, t, head, place)
            with when(tvm.tirx.all(head >= heads, head < heads + kv_heads)):
                for v, place in zip(turned, places):
                    key.set(v, t, head - heads, place)
            with when(head >= heads + kv_heads):
                for v, place in zip(kept, places):
                    value.set(v, t, head - heads - kv_heads, place)

    return kernel("split" if rotation.before_cache(shape) else "rotate_split", body)


def append(shape):
    """Writes the new tokens' keys and values into their slots."""
    kv_heads, width, dtype = shape["num_key_value_heads"], shape["head_dim"], cache_dtype(shape)

    def body(k):
        n = k.size("n")
        pages = attention.Heads(shape).pages(k)
        key = k.tensor("key", (n, kv_heads, width), dtype)
        value = k.tensor("value", (n, kv_heads, width), dtype)
        slots = k.tensor("slots", (n,), "int32", offset=True)
        with k.threads(kv_heads * width, n) as (at, t):
            head, i, slot = at // width, at % width, slots(t)
            with when(slot >= 0):
                pages.set(key(t, head, i), slot // PAGE, 0, head, slot % PAGE, i)
                pages.set(value(t, head, i), slot // PAGE, 1, head, slot % PAGE, i)

    return kernel("kv_append", body)
