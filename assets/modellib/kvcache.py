"""The paged KV cache: TVM's own cache object, with kernels of ours.

It supports what WebLLM uses: one sequence, its whole context, pages of 16 tokens. The attention kernels handle a model's window.
Other kernels of TVM's cache (sliding windows, token trees, page copies, debugging) are absent, because every shader costs load
time; calling one is an error.
"""

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend.nn.llm.kv_cache import AttnKind, PagedKVCache, RopeMode

import attention
from attention import PAGE
from schedule import T, kernel, when

ANGLES = 64  # positions in the fine half of the table of rotations


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
            relax.prim_value(int(RopeMode.NORMAL)),
            relax.prim_value(1.0),
            relax.prim_value(float(theta)),
            relax.const(rotations(shape)),
            relax.op.builtin.alloc_tensor(relax.ShapeExpr([]), shape["dtype"], 0),  # for its dtype and device
            add(append(shape)),
            relax.prim_value(0),  # no latent attention
            *(attend(a) for a in (attention.New, attention.Cached, attention.Decoded)),
            *[none] * 5,  # prefill and decode with a sliding window, two kernels for token trees, latent attention
            relax.Tuple([add(attention.merge(kernels, shape))]),
            add(rotate(shape)),
            *[absent] * 3,  # copy a page, read the cache back, compact it
            ty_args=relax.AnyType(),
        ),
        _name="kv_cache",
    )


def rotations(shape):
    """cos and sin of position * frequency / factor, in two parts so that the table stays small: every ANGLES-th position, then
    the positions below ANGLES. Their product is as exact as float32 allows, whatever the adapter's own sine is worth."""
    width, context = shape["head_dim"], shape["context_window_size"]
    positions = np.concatenate([np.arange(0, context + ANGLES, ANGLES), np.arange(ANGLES)]).astype("float64")
    frequency = shape["rope_theta"] ** (-np.arange(0, width, 2, dtype="float64") / width)
    if shape["rope_factors"]:
        frequency = frequency / np.array(shape["rope_factors"])
    angle = np.outer(positions, frequency)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype("float32")


def rotate(shape):
    """Splits a token's fused row into queries, keys and values, the first two rotated by the token's position."""
    heads, kv_heads, width = shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"]
    half, dtype, context = width // 2, shape["dtype"], shape["context_window_size"]
    coarse = (context + 2 * ANGLES - 1) // ANGLES

    def body(k):
        n = k.size("n")
        fused = k.tensor("fused", (n, heads + 2 * kv_heads, width), dtype)
        positions = k.tensor("positions", (n,), "int32", offset=True)
        q = k.tensor("q", (n, heads, width), dtype)
        key = k.tensor("key", (n, kv_heads, width), dtype)
        value = k.tensor("value", (n, kv_heads, width), dtype)
        table = k.tensor("table", (coarse + ANGLES, 2, half))
        with k.threads((heads + 2 * kv_heads) * half, n) as (at, t):
            head, i = at // half, at % half
            low, high = fused(t, head, i), fused(t, head, i + half)
            major, minor = positions(t) // ANGLES, coarse + positions(t) % ANGLES
            cos, sin = k.local(), k.local()
            cos.set(table(major, 0, i) * table(minor, 0, i) - table(major, 1, i) * table(minor, 1, i))
            sin.set(table(major, 1, i) * table(minor, 0, i) + table(major, 0, i) * table(minor, 1, i))
            turned = low * cos.get() - high * sin.get(), high * cos.get() + low * sin.get()
            with when(head < heads):
                q.set(turned[0], t, head, i)
                q.set(turned[1], t, head, i + half)
            with when(tvm.tirx.all(head >= heads, head < heads + kv_heads)):
                key.set(turned[0], t, head - heads, i)
                key.set(turned[1], t, head - heads, i + half)
            with when(head >= heads + kv_heads):
                value.set(low, t, head - heads - kv_heads, i)
                value.set(high, t, head - heads - kv_heads, i + half)

    return kernel("rotate_split", body)


def append(shape):
    """Writes the new tokens' keys and values into their slots."""
    kv_heads, width, dtype = shape["num_key_value_heads"], shape["head_dim"], shape["dtype"]

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
