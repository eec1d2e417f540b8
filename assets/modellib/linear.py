"""Kernels of the transformer's dense parts: token embedding and matrix products with the operations around them.

A fused product is one dispatch instead of three or four; on a software adapter, a dispatch costs more than the arithmetic of a
small layer. The products here are for software adapters, with one thread for each output; linear_gpu has those for GPUs.
"""

import math
from dataclasses import dataclass

import linear_gpu
from matrix import Part, Reader
from schedule import T, capped, kernel, tanh, when


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
    eps: float | None = None  # x is first normalised by its root mean square, with this in it, and a gain
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

    def __init__(self, k, p):
        self.product = p
        self.n = n = p.tokens or k.size("n")
        self.x = k.tensor("x", (1, n, p.columns), p.source or p.dtype)
        self.gain = k.tensor("gain", (p.columns,), p.dtype) if p.eps is not None else None
        self.weight = Reader(k, p.parts, p.columns, p.dtype)
        self.bias = k.tensor("bias", (p.rows,), p.dtype) if p.bias else None
        self.residual = k.tensor("residual", (1, n, p.rows), p.dtype) if p.residual else None
        self.out = k.tensor("out", (1, 1 if p.last else n, p.rows), "float32" if p.last or p.every else p.dtype)

    def sources(self, tokens, step, squares):
        """What tokens bring to the sums in a step of columns, of which it adds the squares for the norm."""
        found, lanes = [self.weight.source() for _ in tokens], self.weight.lanes
        for i in range(self.weight.step // lanes):
            self.read(tokens, step * self.weight.step + i * lanes, squares, [source.vectors[i] for source in found])
        return found

    def read(self, tokens, at, squares, vectors):
        """Reads vectors of tokens at a column, and adds their squares."""
        lanes = self.weight.lanes
        gain = None if self.gain is None else self.weight.k.keep(self.gain(at, lanes=lanes), lanes)
        for token, vector, square in zip(tokens, vectors, squares):
            vector.set(self.x(0, token, at, lanes=lanes))
            if square is not None:
                square.add_product(vector, vector)
            if gain is not None:
                vector.set(vector.get() * gain)

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


def product(kernels, name, parts, columns, dtype, **fused):
    """The kernel of a Product, of the variant that is asked for."""
    name = "_".join([name, *(part.type for part in parts if part.type != "plain" or len(parts) > 1)])
    p = Product(name, parts, columns, dtype, **fused)
    body = one_thread_an_output if kernels != "gpu" else linear_gpu.vector if p.single else linear_gpu.tiles
    return kernel(name, lambda k: body(k, p, Arguments(k, p)))


def sizes(p):
    """How many tokens and rows of the output a thread takes. On a software adapter a read costs five times as much as a product, and a
    thread reads both factors once. Of several rows enough must remain to keep every core busy, and a small model keeps its short
    shaders."""
    if p.single:
        return 1, 4 if p.rows >= 1024 and p.rows % 4 == 0 else 1
    plain = all(part.type == "plain" for part in p.parts)
    if p.rows >= 512:
        return 8, math.gcd(p.rows, (8 if plain else 4) // len(p.halves))
    return 4, 1


def one_thread_an_output(k, p, a):
    """A thread reads a weight once for all its tokens."""
    tile, stack = sizes(p)
    lanes, step, width = a.weight.lanes, a.weight.step, len(p.halves)
    n, kept = a.n, lanes if tile == 1 else 1
    with k.threads(p.rows // stack, 1 if p.last else (n + tile - 1) // tile) as (j, block):
        # The last block may exceed the tokens: it repeats the last token and discards the result.
        source = [n - 1 if p.last else block if tile == 1 else T.min(block * tile + m, n - 1) for m in range(tile)]
        dots = [k.local(kept) for _ in range(tile * stack * width)]
        squares = [k.local(kept) if p.eps is not None else None for _ in source]
        for variable in filter(None, dots + squares):
            variable.set(0)
        runs = [[j * stack + r + half for r in range(stack)] for half in p.halves]
        totals = [[dots[r * width + h::stack * width] for r in range(stack)] for h in range(width)]
        with T.serial(0, p.columns // step) as i:
            if tile > 1 and not a.weight.plain:
                vectors = [k.local(lanes) for _ in source]

                def read(vector, first):
                    a.read(source, i * step + vector * lanes, squares if first else [None] * tile, vectors)
                    return vectors

                a.weight.add_many(runs, i, read, sum(totals, []))
            else:
                sources = a.sources(source, i, squares)
                for rows, sums in zip(runs, totals):
                    a.weight.add(rows, i, sources, sums)

        def write(m, r):
            sums = [dots[(m * stack + r) * width + h].sum() for h in range(width)]
            if p.eps is not None:
                scale = k.keep(a.scale(squares[m].sum()))
                sums = [s * scale for s in sums]
            a.store(sums, block * tile + m, j * stack + r)

        if tile == 1:
            for r in range(stack):
                write(0, r)
            return
        # Written out, many results take long to compile. A loop needs an array, which would make the sums above slow.
        dots, squares = k.gathered(dots), k.gathered(squares) if p.eps is not None else None
        with T.serial(0, tile) as m, T.serial(0, stack) as r, when(block * tile + m < n):
            write(m, r)
