"""Kernels of the transformer's dense parts: token embedding and matrix products with the operations around them.

A fused product is one dispatch instead of three or four; on a software adapter, a dispatch costs more than the arithmetic of a
small layer. The products here are for software adapters, without barriers; linear_gpu has those for GPUs.
"""

import functools
import math
from dataclasses import dataclass

from tvm.tirx import all as all_of

import linear_gpu
from matrix import Part, Reader
from schedule import NEIGHBOURS, THREADS, T, capped, joined, kernel, lanes_of, of_neighbour, tanh, when


def embed(parts, width, dtype, scale):
    """Row ids[t] of the embedding for each token t, times the scale if there is one."""

    def body(k):
        n = k.size("n")
        ids = k.tensor("ids", (n,), "int32")
        table = Reader(k, parts, width, dtype)
        out = k.tensor("out", (n, width), dtype)
        lanes = table.lanes
        with k.threads(width // lanes, n) as (i, t):
            value = table.vector(ids(t), i * lanes)
            out.set(value * T.float32(scale) if scale else value, t, i * lanes, lanes=lanes)

    return kernel("embed_tokens", body)


@dataclass(frozen=True)
class Product:
    """out[t] = W x[t], where W has these parts, one below the other, and what is fused with it."""

    name: str
    parts: tuple[Part, ...]
    columns: int
    dtype: str  # of all that is read and written, but perhaps x; sums are float32
    tokens: int | None = None  # how many there are when that is known (decoding), else any number
    source: str | None = None  # the dtype of x
    eps: float | None = None  # x is first normalised by its root mean square, with this in it, and a gain; not by many_tokens
    bias: bool = False  # an input of [rows] is added
    gated: str | None = None  # silu or gelu: out = silu(first half of W x) * second half
    residual: bool = False  # an input like the output is added
    last: bool = False  # only the last token's row is computed: the logits, float32 in any case
    every: bool = False  # the same of every token
    cap: float = 0.0  # a soft cap of the output

    @property
    def single(self):
        """Whether there is only one token to compute."""
        return self.tokens == 1 or self.last

    @property
    def rows(self):
        """How many the output has."""
        return sum(part.rows for part in self.parts) // (2 if self.gated else 1)

    @property
    def halves(self):
        """The rows of W that make an output's row, relative to it."""
        return (0, self.rows) if self.gated else (0,)


def silu(value):
    return value / (T.float32(1) + T.exp(-value))


def gelu(value):
    """The approximation by tanh."""
    return T.float32(0.5) * value * (T.float32(1) + tanh(T.float32(math.sqrt(2 / math.pi)) * value * (
        T.float32(1) + T.float32(0.044715) * value * value)))


ACTIVATIONS = {"silu": silu, "gelu": gelu}


class Arguments:
    """A product's tensors, in the order of its arguments; what it doesn't have is None."""

    def __init__(self, k, p, vectors):
        self.product = p
        self.n = n = p.tokens or k.size("n")
        self.x = k.tensor("x", (1, n, p.columns), p.source or p.dtype)
        self.gain = k.tensor("gain", (p.columns,), p.dtype) if p.eps is not None else None
        self.weight = Reader(k, p.parts, p.columns, p.dtype, vectors)
        self.bias = k.tensor("bias", (p.rows,), p.dtype) if p.bias else None
        self.residual = k.tensor("residual", (1, n, p.rows), p.dtype) if p.residual else None
        self.out = k.tensor("out", (1, 1 if p.last else n, p.rows), "float32" if p.last or p.every else p.dtype)

    def source(self, token, step, square, thread=None):
        """What a token brings to the sums in a step of columns, of which it adds the squares for the norm. Given a thread's number,
        the neighbours share out what is read, and each adds only its own squares."""
        found, lanes = self.weight.source(), self.weight.lanes
        for first in range(0, len(found.vectors), 1 if thread is None else NEIGHBOURS):
            own, at = found.vectors[first], step * self.weight.step + first * lanes
            if thread is not None:
                own, at = self.weight.k.local(lanes), at + thread * lanes
            own.set(self.x(0, token, at, lanes=lanes))
            if square is not None:
                square.add_product(own, own)
                own.set(own.get() * self.gain(at, lanes=lanes))
            if thread is not None:
                for m in range(NEIGHBOURS):
                    found.vectors[first + m].set(of_neighbour(own, m))
        return found

    def scale(self, squares):
        """What normalises a token's sums, given the sum of its squares."""
        return T.rsqrt(squares / T.float32(self.product.columns) + T.float32(self.product.eps))

    def store(self, sums, token, row):
        """Writes an output, given the sums over its rows of W."""
        value = ACTIVATIONS[self.product.gated](sums[0]) * sums[1] if self.product.gated else sums[0]
        for more in (self.bias and self.bias(row), self.residual and self.residual(0, token, row)):
            value = value if more is None else value + more
        if self.product.cap:
            value = capped(value, self.product.cap)
        self.out.set(value, 0, 0 if self.product.last else token, row)


@functools.cache
def product(kernels, name, parts, columns, dtype, **fused):
    """The kernel of a Product, of the variant that is asked for. All functions of a library must call the same one, hence the cache."""
    name = "_".join([name, *(part.type for part in parts if part.type != "plain" or len(parts) > 1)])
    p = Product(name, parts, columns, dtype, **fused)
    if kernels == "gpu":
        body = linear_gpu.vector if p.single else linear_gpu.tiles
    else:
        body = one_token if p.single else many_tokens
    shared = body is one_token and columns % (NEIGHBOURS * lanes_of(columns)) == 0
    return kernel(name, lambda k: body(k, p, Arguments(k, p, NEIGHBOURS if shared else 1)))


def one_token(k, p, a):
    """A thread takes some rows of the output, of which enough must remain to keep every core busy."""
    most = (4 if p.rows >= 1024 else 2 if p.rows >= 512 else 1) // len(p.halves)
    stack = math.gcd(p.rows, max(most, 1))
    width, threads = len(p.halves), p.rows // stack
    with k.threads(threads, all_act=True) as (at,):
        j = k.number(T.min(at, threads - 1)) if threads % THREADS else at
        thread = at % NEIGHBOURS if a.weight.step // a.weight.lanes % NEIGHBOURS == 0 else None
        sums = [[k.local(a.weight.lanes) for _ in range(stack)] for _ in p.halves]
        square = k.local(a.weight.lanes) if p.eps is not None else None
        for variable in filter(None, [*sum(sums, []), square]):
            variable.set(0)
        with T.serial(0, p.columns // a.weight.step) as i:
            source = a.source(a.n - 1 if p.last else 0, i, square, thread)
            for half, totals in zip(p.halves, sums):
                a.weight.add([j * stack + r + half for r in range(stack)], i, source, totals)
        scale = T.float32(1)
        if square is not None:
            total = k.local()
            total.set(square.sum())
            if thread is not None:
                joined(total)
            scale = k.keep(a.scale(total.get()))
        with when(at < threads):
            for r in range(stack):
                a.store([sums[h][r].sum() * scale for h in range(width)], 0, j * stack + r)


def many_tokens(k, p, a):
    """A thread takes some rows of the output for some tokens. On a software adapter a read costs as much as forty products: threads of
    a subgroup share out the tokens' vectors, which all of them need. A small model keeps short shaders."""
    tile, stack = 4, 1
    if p.rows >= 512:
        tile, stack = 16, min((s for s in range(1, 4 // len(p.halves) + 1) if p.rows % s == 0),
                              key=lambda s: math.ceil(p.rows / s / THREADS) * (s + 3))
    lanes, threads = a.weight.lanes, p.rows // stack
    with k.threads(threads, (a.n + tile - 1) // tile, all_act=True) as (at, block):
        # What exceeds rows or tokens repeats the last one, and its result is discarded.
        j = k.number(T.min(at, threads - 1)) if threads % THREADS else at
        sums = [k.local() for _ in range(tile * stack * len(p.halves))]
        for variable in sums:
            variable.set(0)
        runs = [[j * stack + r + half for r in range(stack)] for half in p.halves]
        tokens = [k.number(T.min(block * tile + m + at % NEIGHBOURS, a.n - 1)) for m in range(0, tile, NEIGHBOURS)]

        def read(column):
            own = [k.local(lanes) for _ in tokens]
            for vector, token in zip(own, tokens):
                vector.set(a.x(0, token, column, lanes=lanes))
            vectors = [k.local(lanes) for _ in range(tile)]
            for m, vector in enumerate(vectors):
                vector.set(of_neighbour(own[m // NEIGHBOURS], m % NEIGHBOURS))
            return vectors

        with T.serial(0, p.columns // a.weight.step) as i:
            a.weight.add_many(runs, i, read, [sums[r * tile:(r + 1) * tile] for r in range(stack * len(p.halves))])
        # Written out, many results take long to compile. A loop needs an array, which would make the sums above slow.
        sums = k.gathered(sums)
        with T.serial(0, tile) as m, T.serial(0, stack) as r, when(all_of(at < threads, block * tile + m < a.n)):
            a.store([sums[(h * stack + r) * tile + m].get() for h in range(len(p.halves))], block * tile + m, j * stack + r)
