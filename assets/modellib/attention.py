"""Attention kernels of the KV cache for software adapters: one thread for each head of a token, without barriers.

They compute full attention of one sequence, or attention within a sliding window. Kernels skip positions before the window, so
the cache does not know it. Positions count from the start of the sequence. The GPU kernels in attention_gpu take the same
arguments.
"""

import attention_gpu
from schedule import T, capped, kernel, lanes_of, when
from shape import cache_dtype

PAGE = 16  # tokens in a page; WebLLM uses no other size
FEW = 16  # up to so many vectors of a head, loops are unrolled
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

    def key(self, t, head, p, i):
        return self._key(p, head // self._h.group, i, lanes=self._h.lanes)

    def value(self, t, head, p, i):
        return self._value(p, head // self._h.group, i, lanes=self._h.lanes)


class Paged:
    """Attention over the cache."""

    def key(self, t, head, p, i):
        return self._read(0, t, head, p, i)

    def value(self, t, head, p, i):
        return self._read(1, t, head, p, i)

    def _read(self, kind, t, head, p, i):
        page = self.numbers(self.first(t) + p // PAGE)
        return self.pages(page, kind, head // self._h.group, p % PAGE, i, lanes=self._h.lanes)


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
            one_thread_a_head(k, h, a)
        elif arguments is Decoded:
            attention_gpu.split_positions(k, h, a)
        else:
            attention_gpu.tiles(k, h, a)

    return kernel(arguments.name, body)


def one_thread_a_head(k, h, a):
    """Online softmax: sums are rescaled when a greater score comes."""
    lanes = h.lanes
    columns = h.width // lanes

    def spread(value):
        return T.broadcast(value, lanes) if lanes > 1 else value

    def each(act):
        """Acts on every vector of a head: written out where they are few, since a loop costs time, and in a loop where they are
        many, since a long shader takes a second to compile."""
        if columns <= FEW:
            for i in range(columns):
                act(i)
            return
        with T.serial(0, columns) as i:
            act(i)

    with k.threads(a.n * h.heads) as (at,):
        t, head = at // h.heads, at % h.heads
        begin, end = a.span(t)
        q, out = vectors(k, columns, lanes), vectors(k, columns, lanes)
        high, mass, score = k.local(), k.local(), k.local()
        dot, shrink = k.local(lanes), k.local()
        each(lambda i: q[i].set(a.q(t, head, i * lanes, lanes=lanes) * spread(a.scale)))
        each(lambda i: out[i].set(0))
        high.set(T.float32(-1e30))
        mass.set(T.float32(0))
        with T.serial(begin, end) as p:
            dot.set(0)
            each(lambda i: dot.add(q[i].get() * a.key(t, head, p, i * lanes)))
            score.set(h.score(dot.sum()))
            with when(score.get() > high.get()):
                shrink.set(T.exp(high.get() - score.get()))
                high.set(score.get())
                mass.set(mass.get() * shrink.get())
                each(lambda i: out[i].set(out[i].get() * spread(shrink.get())))
            score.set(T.exp(score.get() - high.get()))
            mass.add(score.get())
            each(lambda i: out[i].add(spread(score.get()) * a.value(t, head, p, i * lanes)))
        if h.window:  # a token may see no position of the cache
            mass.set(T.max(mass.get(), T.float32(1e-30)))
        each(lambda i: a.out.set(out[i].get() / spread(mass.get()), t, head, i * lanes, lanes=lanes))
        a.lse.set(high.get() + T.log(mass.get()), t, head)


def vectors(k, count, lanes):
    """count vectors of a thread's own: variables, which stay in registers, as long as no loop steps through them."""
    return [k.local(lanes) for _ in range(count)] if count <= FEW else k.locals(count, lanes)


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
