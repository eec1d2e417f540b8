"""The paged KV cache: TVM's own cache object, with attention kernels of ours.

The cache is built for what the page asks of it: one sequence, full attention, pages of 16 tokens. Kernels that such a cache never
calls (sliding windows, token trees, page copies, debugging) are not compiled in, since every shader costs load time; a call of one
ends in an error that says so.
"""

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend.nn.llm.kv_cache import AttnKind, PagedKVCache, RopeMode

from schedule import T, kernel, lanes_of, when

PAGE = 16  # tokens a page; the page's runtime asks for no other size
SEQUENCES = 1  # a batch's sequences in a prefill; a call with more is refused by the kernel's own check of its arguments
ANGLES = 64  # positions in the fine half of the table of rotations


def create(shape, sequences, tokens, chunk, page, window):
    """The cache, as an expression of the function that the page calls; the last five are sizes known at run time."""
    heads, kv_heads, width = shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"]
    layers, theta, context = shape["num_hidden_layers"], shape["rope_theta"], shape["context_window_size"]

    def add(func):
        return relax.BlockBuilder.current().add_func(func, func.attrs["global_symbol"])

    def tir(func):
        return relax.Tuple([tvm.ir.StringImm("tirx"), add(func)])

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
            relax.const(rotations(width, theta, context)),
            relax.op.builtin.alloc_tensor(relax.ShapeExpr([]), "float32", 0),  # tells dtype and device, is never read
            add(append(kv_heads, width)),
            relax.prim_value(0),  # no latent attention
            tir(attend_new(heads, kv_heads, width)),
            tir(attend_cached(heads, kv_heads, width)),
            tir(attend_decode(heads, kv_heads, width)),
            *[none] * 5,  # prefill and decode with a sliding window, two kernels for token trees, latent attention
            relax.Tuple([add(merge(heads, width))]),
            add(rotate(heads, kv_heads, width, context)),
            *[absent] * 3,  # copy a page, read the cache back, compact it
            ty_args=relax.AnyType(),
        ),
        _name="kv_cache",
    )


def rotations(width, theta, context):
    """cos and sin of position * frequency, in two factors so that the table stays small: every ANGLES-th position, then the
    positions below ANGLES. Their product is as exact as float32 allows, whatever the adapter's own sine is worth."""
    positions = np.concatenate([np.arange(0, context + ANGLES, ANGLES), np.arange(ANGLES)]).astype("float64")
    frequency = theta ** (-np.arange(0, width, 2, dtype="float64") / width)
    angle = np.outer(positions, frequency)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype("float32")


def rotate(heads, kv_heads, width, context):
    """Splits a token's fused row into queries, keys and values, the first two rotated by the token's position."""
    half = width // 2
    coarse = (context + 2 * ANGLES - 1) // ANGLES

    def body(k):
        n = k.size("n")
        fused = k.tensor("fused", (n, heads + 2 * kv_heads, width))
        positions = k.tensor("positions", (n,), "int32", offset=True)
        q = k.tensor("q", (n, heads, width))
        key = k.tensor("key", (n, kv_heads, width))
        value = k.tensor("value", (n, kv_heads, width))
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


def pages_of(k, kv_heads, width):
    """A layer's pages: keys, then values."""
    return k.tensor("pages", (k.size("page_count"), 2, kv_heads, PAGE, width))


def append(kv_heads, width):
    """Writes the new tokens' keys and values into their slots."""

    def body(k):
        n = k.size("n")
        pages = pages_of(k, kv_heads, width)
        key = k.tensor("key", (n, kv_heads, width))
        value = k.tensor("value", (n, kv_heads, width))
        slots = k.tensor("slots", (n,), "int32", offset=True)
        with k.threads(kv_heads * width, n) as (at, t):
            head, i, slot = at // width, at % width, slots(t)
            with when(slot >= 0):
                pages.set(key(t, head, i), slot // PAGE, 0, head, slot % PAGE, i)
                pages.set(value(t, head, i), slot // PAGE, 1, head, slot % PAGE, i)

    return kernel("kv_append", body)


def attend(k, width, scale, query, count, key, value):
    """One head of one token over count positions, softmax on the way; returns the output's vectors and the log of the sum of the
    exponentials. query(i), key(p, i) and value(p, i) read a vector of lanes at i."""
    lanes = lanes_of(width)
    columns = range(0, width, lanes)

    def spread(value):
        return T.broadcast(value, lanes) if lanes > 1 else value

    q = [k.local(lanes) for _ in columns]
    out = [k.local(lanes) for _ in columns]
    high, mass, score = k.local(), k.local(), k.local()
    dot, shrink = k.local(lanes), k.local()
    for variable, i in zip(q, columns):
        variable.set(query(i) * spread(scale))
    for variable in out:
        variable.set(0)
    high.set(T.float32(-1e30))
    mass.set(T.float32(0))
    with T.serial(0, count) as p:
        dot.set(0)
        for variable, i in zip(q, columns):
            dot.add(variable.get() * key(p, i))
        score.set(dot.sum())
        with when(score.get() > high.get()):
            shrink.set(T.exp(high.get() - score.get()))
            high.set(score.get())
            mass.set(mass.get() * shrink.get())
            for variable in out:
                variable.set(variable.get() * spread(shrink.get()))
        score.set(T.exp(score.get() - high.get()))
        mass.add(score.get())
        for variable, i in zip(out, columns):
            variable.add(spread(score.get()) * value(p, i))
    return [variable.get() / spread(mass.get()) for variable in out], high.get() + T.log(mass.get())


def finish(out, lse, vectors, log_sum, token, head, width):
    lanes = lanes_of(width)
    for i, vector in zip(range(0, width, lanes), vectors):
        out.set(vector, token, head, i, lanes=lanes)
    lse.set(log_sum, token, head)


def attend_new(heads, kv_heads, width):
    """A prompt's tokens over themselves: token t sees the tokens up to t."""
    lanes, group = lanes_of(width), heads // kv_heads

    def body(k):
        n = k.size("n")
        q = k.tensor("q", (n, heads, width))
        k.tensor("q_indptr", (SEQUENCES + 1,), "int32", offset=True)
        key = k.tensor("key", (n, kv_heads, width))
        value = k.tensor("value", (n, kv_heads, width))
        k.tensor("kv_indptr", (SEQUENCES + 1,), "int32", offset=True)
        k.tensor("q_positions", (n,), "int32", offset=True)
        k.tensor("k_offset", (SEQUENCES,), "int32", offset=True)
        out = k.tensor("out", (n, heads, width))
        lse = k.tensor("lse", (n, heads))
        scale = attention_scalars(k, causal=True)
        with k.threads(n * heads) as (at,):
            t, head = at // heads, at % heads
            vectors, log_sum = attend(
                k, width, scale, lambda i: q(t, head, i, lanes=lanes), t + 1,
                lambda p, i: key(p, head // group, i, lanes=lanes), lambda p, i: value(p, head // group, i, lanes=lanes))
            finish(out, lse, vectors, log_sum, t, head, width)

    return kernel("attend_new", body)


def attend_cached(heads, kv_heads, width):
    """A prompt's tokens over all that the cache held before them."""
    lanes, group = lanes_of(width), heads // kv_heads

    def body(k):
        n, held = k.size("n"), k.size("held")
        q = k.tensor("q", (n, heads, width))
        k.tensor("q_indptr", (SEQUENCES + 1,), "int32", offset=True)
        pages = pages_of(k, kv_heads, width)
        k.tensor("page_indptr", (SEQUENCES + 1,), "int32", offset=True)
        numbers = k.tensor("page_numbers", (held,), "int32", offset=True)
        last = k.tensor("last_page", (SEQUENCES,), "int32", offset=True)
        k.tensor("k_offset", (SEQUENCES,), "int32", offset=True)
        k.tensor("q_positions", (n,), "int32", offset=True)
        out = k.tensor("out", (n, heads, width))
        lse = k.tensor("lse", (n, heads))
        scale = attention_scalars(k, causal=True)
        with k.threads(n * heads) as (at,):
            t, head = at // heads, at % heads

            def read(kind):
                return lambda p, i: pages(numbers(p // PAGE), kind, head // group, p % PAGE, i, lanes=lanes)

            vectors, log_sum = attend(
                k, width, scale, lambda i: q(t, head, i, lanes=lanes), (held - 1) * PAGE + last(0), read(0), read(1))
            finish(out, lse, vectors, log_sum, t, head, width)

    return kernel("attend_cached", body)


def attend_decode(heads, kv_heads, width):
    """A new token, whose own key and value are in the cache already, over the cache."""
    lanes, group = lanes_of(width), heads // kv_heads

    def body(k):
        n, held = k.size("n"), k.size("held")
        q = k.tensor("q", (n, heads, width))
        pages = pages_of(k, kv_heads, width)
        bounds = k.tensor("page_indptr", (n + 1,), "int32", offset=True)
        numbers = k.tensor("page_numbers", (held,), "int32", offset=True)
        last = k.tensor("last_page", (n,), "int32", offset=True)
        k.tensor("k_offset", (n,), "int32", offset=True)
        k.tensor("q_positions", (n,), "int32", offset=True)
        out = k.tensor("out", (n, heads, width))
        lse = k.tensor("lse", (n, heads))
        scale = attention_scalars(k, causal=False)
        with k.threads(n * heads) as (at,):
            s, head = at // heads, at % heads
            count = (bounds(s + 1) - bounds(s) - 1) * PAGE + last(s)

            def read(kind):
                return lambda p, i: pages(numbers(bounds(s) + p // PAGE), kind, head // group, p % PAGE, i, lanes=lanes)

            vectors, log_sum = attend(k, width, scale, lambda i: q(s, head, i, lanes=lanes), count, read(0), read(1))
            finish(out, lse, vectors, log_sum, s, head, width)

    return kernel("attend_decode", body)


def attention_scalars(k, causal):
    """The trailing scalars of the cache's attention calls; only the scale of the scores matters here."""
    if causal:
        k.scalar("causal", "int32")
    k.scalar("rotary_mode", "int32")
    k.scalar("rope_scale", "float32")
    k.scalar("rope_theta", "float32")
    return k.scalar("score_scale", "float32")


def merge(heads, width):
    """Joins two partial attentions of the same tokens, each weighted by its share of the exponentials' sum."""

    def body(k):
        n = k.size("n")
        out = k.tensor("out", (n, heads, width))
        lse = k.tensor("lse", (n, heads))
        other = k.tensor("other", (n, heads, width))
        other_lse = k.tensor("other_lse", (n, heads))
        # A thread owns a whole head: were it split, one thread would overwrite the lse that another has yet to read.
        with k.threads(n * heads) as (at,):
            t, head = at // heads, at % heads
            ours, theirs, total = k.local(), k.local(), k.local()
            high = T.max(lse(t, head), other_lse(t, head))
            ours.set(T.exp(lse(t, head) - high))
            theirs.set(T.exp(other_lse(t, head) - high))
            total.set(ours.get() + theirs.get())
            with T.serial(0, width) as i:
                out.set((out(t, head, i) * ours.get() + other(t, head, i) * theirs.get()) / total.get(), t, head, i)
            lse.set(high + T.log(total.get()), t, head)

    return kernel("attend_merge", body)
