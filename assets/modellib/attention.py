"""Attention kernels of the KV cache for software adapters: a few threads for each head of a token, without barriers.

They compute full attention of one sequence, or attention within a sliding window. Kernels skip positions before the window, so
the cache does not know it. Positions count from the start of the sequence. The GPU kernels in attention_gpu take the same
arguments.
"""

import contextlib

import attention_gpu
from schedule import NEIGHBOURS, T, capped, joined, kernel, lanes_of, when
from shape import cache_dtype

PAGE = 16  # tokens in a page; WebLLM uses no other size
SEQUENCES = 1  # in a prefill; kernels refuse more
ALL = 1 << 30  # more positions than any context has


class Heads:
    """The sizes of a model that the kernels use."""

    def __init__(self, shape):
        self.heads, self.kv_heads = shape["num_attention_heads"], shape["num_key_value_heads"]
        self.width, self.window, self.dtype = shape["head_dim"], shape["sliding_window_size"], cache_dtype(shape)
        self.some, self.cap = bool(shape["local_layers"]), shape["attn_logit_softcapping"]
        self.group = self.heads // self.kv_heads
        self.lanes = lanes_of(self.width)

    def begin(self, position, scale):
        """The first position that the token at a position sees. If only some layers have the window, those have a negative
        scale."""
        if not self.window:
            return 0
        before = self.window - 1
        return T.max(position - (T.Select(scale < T.float32(0), before, ALL) if self.some else before), 0)

    def score(self, product):
        """The score of a query, already scaled, and a key."""
        return capped(product, self.cap) if self.cap else product

    def pages(self, k):
        """A layer's pages: keys, then values."""
        return k.tensor("pages", (k.size("page_count"), 2, self.kv_heads, PAGE, self.width), self.dtype)


class New:
    """A prompt's tokens over themselves: token t sees the tokens up to t."""

    name = "attend_new"

    def __init__(self, k, h):
        self.n = n = k.size("n")
        self.q = k.tensor("q", (n, h.heads, h.width), h.dtype)
        k.tensor("q_indptr", (SEQUENCES + 1,), "int32", offset=True)
        self._key = k.tensor("key", (n, h.kv_heads, h.width), h.dtype)
        self._value = k.tensor("value", (n, h.kv_heads, h.width), h.dtype)
        k.tensor("kv_indptr", (SEQUENCES + 1,), "int32", offset=True)
        k.tensor("q_positions", (n,), "int32", offset=True)
        k.tensor("k_offset", (SEQUENCES,), "int32", offset=True)
        results(self, k, h, causal=True)
        self._h = h

    def span(self, t):
        """The positions that token t sees: the first, and the one after the last."""
        return self._h.begin(t, self.signed), t + 1

    def place(self, t, p):
        """Indices of what token t reads for a position."""
        return (p,)

    def key(self, place, head, i):
        return self._key(*place, head, i, lanes=self._h.lanes)

    def value(self, place, head, i):
        return self._value(*place, head, i, lanes=self._h.lanes)


class Paged:
    """Attention over the cache."""

    def place(self, t, p):
        return self.numbers(self.first(t) + p // PAGE), p % PAGE

    def key(self, place, head, i):
        return self._read(0, place, head, i)

    def value(self, place, head, i):
        return self._read(1, place, head, i)

    def _read(self, kind, place, head, i):
        page, slot = place
        return self.pages(page, kind, head, slot, i, lanes=self._h.lanes)


class Cached(Paged):
    """A prompt's tokens over all that the cache held before them."""

    name = "attend_cached"

    def __init__(self, k, h):
        self.n, held = k.size("n"), k.size("held")
        self.q = k.tensor("q", (self.n, h.heads, h.width), h.dtype)
        k.tensor("q_indptr", (SEQUENCES + 1,), "int32", offset=True)
        self.pages = h.pages(k)
        k.tensor("page_indptr", (SEQUENCES + 1,), "int32", offset=True)
        self.numbers = k.tensor("page_numbers", (held,), "int32", offset=True)
        last = k.tensor("last_page", (SEQUENCES,), "int32", offset=True)
        k.tensor("k_offset", (SEQUENCES,), "int32", offset=True)
        k.tensor("q_positions", (self.n,), "int32", offset=True)
        results(self, k, h, causal=True)
        self._h, self._count = h, lambda: (held - 1) * PAGE + last(0)

    def first(self, t):
        return 0

    def span(self, t):
        return self._h.begin(self._count() + t, self.signed), self._count()


class Decoded(Paged):
    """A new token over the cache, which has its key and value."""

    name = "attend_decode"

    def __init__(self, k, h):
        self.n, held = k.size("n"), k.size("held")
        self.q = k.tensor("q", (self.n, h.heads, h.width), h.dtype)
        self.pages = h.pages(k)
        self.first = k.tensor("page_indptr", (self.n + 1,), "int32", offset=True)
        self.numbers = k.tensor("page_numbers", (held,), "int32", offset=True)
        self._last = k.tensor("last_page", (self.n,), "int32", offset=True)
        k.tensor("k_offset", (self.n,), "int32", offset=True)
        k.tensor("q_positions", (self.n,), "int32", offset=True)
        results(self, k, h, causal=False)
        self._h = h

    def span(self, t):
        count = (self.first(t + 1) - self.first(t) - 1) * PAGE + self._last(t)
        return self._h.begin(count - 1, self.signed), count


def results(a, k, h, causal):
    """The trailing arguments of the cache's attention calls; of the scalars only the scale of the scores matters here, see
    Heads.begin."""
    a.out = k.tensor("out", (a.n, h.heads, h.width), h.dtype)
    a.lse = k.tensor("lse", (a.n, h.heads))
    if causal:
        k.scalar("causal", "int32")
    k.scalar("rotary_mode", "int32")
    k.scalar("rope_scale", "float32")
    k.scalar("rope_theta", "float32")
    a.signed = k.scalar("score_scale", "float32")
    a.scale = T.abs(a.signed) if h.some else a.signed


def attend(kernels, shape, arguments):
    """The kernel of one of the three kinds of attention; its results are the output and the log of the sum of the exponentials."""
    h = Heads(shape)

    def body(k):
        a = arguments(k, h)
        if kernels != "gpu":
            neighbours_a_head(k, h, a)
        elif arguments is Decoded:
            attention_gpu.split_positions(k, h, a)
        else:
            attention_gpu.tiles(k, h, a)

    return kernel(arguments.name, body)


def neighbours_a_head(k, h, a):
    """Online softmax: sums are rescaled when a greater score comes. The threads of a subgroup share out the vectors of a head, which
    makes the kernel short: written out for one thread, it takes 50 MiB to compile."""
    lanes = h.lanes
    columns = h.width // lanes
    most = (columns + NEIGHBOURS - 1) // NEIGHBOURS

    def spread(value):
        return T.broadcast(value, lanes) if lanes > 1 else value

    with k.groups(NEIGHBOURS, h.heads, a.n) as (thread, head, t):
        begin, end = map(k.number, a.span(t))
        q, out = ([k.local(lanes) for _ in range(most)] for _ in range(2))
        # A thread that has fewer vectors than others reads the last one again, and its part of the query is zero there.
        columns_read = [T.min(i * NEIGHBOURS + thread, columns - 1) * lanes for i in range(most)]
        high, mass, score, shrink = (k.local() for _ in range(4))
        dot = k.local(lanes)
        for i in range(most):
            out[i].set(0)
            q[i].set(0)
            with owned(columns, i, thread) as at:
                q[i].set(a.q(t, head, at * lanes, lanes=lanes) * spread(a.scale))
        high.set(T.float32(-1e30))
        mass.set(T.float32(0))
        with T.serial(begin, end) as p:
            place = [k.number(index) for index in a.place(t, p)]
            dot.set(0)
            for vector, at in zip(q, columns_read):
                dot.add(vector.get() * a.key(place, head // h.group, at))
            score.set(dot.sum())
            joined(score)
            score.set(h.score(score.get()))
            shrink.set(T.Select(score.get() > high.get(), T.exp(high.get() - score.get()), T.float32(1)))
            high.set(T.max(high.get(), score.get()))
            score.set(T.exp(score.get() - high.get()))
            mass.set(mass.get() * shrink.get() + score.get())
            for vector, at in zip(out, columns_read):
                vector.set(vector.get() * spread(shrink.get()) + spread(score.get()) * a.value(place, head // h.group, at))
        if h.window:  # a token may see no position of the cache
            mass.set(T.max(mass.get(), T.float32(1e-30)))
        for i in range(most):
            with owned(columns, i, thread) as at:
                a.out.set(out[i].get() / spread(mass.get()), t, head, at * lanes, lanes=lanes)
        with when(thread == 0):
            a.lse.set(high.get() + T.log(mass.get()), t, head)


@contextlib.contextmanager
def owned(columns, i, thread):
    """Yields the number of the vector that is a thread's own number i, where there is one."""
    at = i * NEIGHBOURS + thread
    if columns % NEIGHBOURS == 0:
        yield at
        return
    with when(at < columns):
        yield at


class Parts:
    """Two partial attentions of the same tokens; the result replaces the first."""

    def __init__(self, k, h):
        self.n = n = k.size("n")
        self.out = k.tensor("out", (n, h.heads, h.width), h.dtype)
        self.lse = k.tensor("lse", (n, h.heads))
        self.other = k.tensor("other", (n, h.heads, h.width), h.dtype)
        self.other_lse = k.tensor("other_lse", (n, h.heads))

    def high(self, t, head):
        return T.max(self.lse(t, head), self.other_lse(t, head))

    def shares(self, t, head):
        """What the exponentials' sums of both weigh, relative to the greater one."""
        high = self.high(t, head)
        return T.exp(self.lse(t, head) - high), T.exp(self.other_lse(t, head) - high)


def merge(kernels, shape):
    """Joins two partial attentions, each weighted by its share of the exponentials' sum."""
    h = Heads(shape)

    def body(k):
        a = Parts(k, h)
        if kernels == "gpu":
            attention_gpu.merge(k, h, a)
            return
        # One thread for each head, because it overwrites the lse that it reads.
        with k.threads(a.n * h.heads) as (at,):
            t, head = at // h.heads, at % h.heads
            ours, theirs, total = k.local(), k.local(), k.local()
            for variable, share in zip((ours, theirs), a.shares(t, head)):
                variable.set(share)
            total.set(ours.get() + theirs.get())
            with T.serial(0, h.width) as i:
                a.out.set((a.out(t, head, i) * ours.get() + a.other(t, head, i) * theirs.get()) / total.get(), t, head, i)
            a.lse.set(a.high(t, head) + T.log(total.get()), t, head)

    return kernel("attend_merge", body)
