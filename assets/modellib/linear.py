"""Kernels of the transformer's dense parts: token embedding and matrix products with whatever surrounds them fused in.

A fused product is one dispatch where a graph of operators would take three or four; a dispatch costs a software adapter more than
the arithmetic of a small layer.
"""

import contextlib

from schedule import T, kernel, lanes_of, when


def embed(vocab, width):
    """Row ids[t] of the embedding for each token t."""

    def body(k):
        n = k.size("n")
        ids = k.tensor("ids", (n,), "int32")
        table = k.tensor("table", (vocab, width))
        out = k.tensor("out", (n, width))
        with k.threads(width, n) as (i, t):
            out.set(table(ids(t), i), t, i)

    return kernel("embed_tokens", body)


def product(name, rows, columns, *, tokens=None, eps=None, gated=False, residual=False, last=False):
    """out[t] = W x[t], where W is [rows, columns] as the weights lie on disk.

    tokens: how many there are when that is known (decoding), else any number, four to a thread, which reads a weight once for
    all four. eps: x is first normalised by its root mean square and a gain. gated: W is [2*rows, columns] and out = silu(first
    half) * second half. residual: another input is added. last: only the last token's row is computed.
    """
    tile = 1 if tokens or last else 4
    stack = stack_of(rows, tile, gated)
    lanes = lanes_of(columns)
    halves = (0, rows) if gated else (0,)

    def body(k):
        n = tokens or k.size("n")
        x = k.tensor("x", (1, n, columns))
        gain = k.tensor("gain", (columns,)) if eps is not None else None
        weight = k.tensor("weight", (len(halves) * rows, columns))
        add = k.tensor("add", (1, n, rows)) if residual else None
        out = k.tensor("out", (1, 1 if last else n, rows))
        with k.threads(rows // stack, 1 if last else (n + tile - 1) // tile) as (j, block):
            token = [n - 1] if last else [block * tile + m for m in range(tile)]
            # The last block may reach past the last token: it reads that token again and throws the result away.
            source = [t if tile == 1 else T.min(t, n - 1) for t in token]
            wanted = [j * stack + r + half for r in range(stack) for half in halves]
            dots = [[k.local(lanes) for _ in wanted] for _ in source]
            squares = [k.local(lanes) if eps is not None else None for _ in source]
            for variable in filter(None, sum(dots, squares)):
                variable.set(0)
            with T.serial(0, columns // lanes) as i:
                at = i * lanes
                weights = [weight(row, at, lanes=lanes) for row in wanted]
                for t, dot, square in zip(source, dots, squares):
                    value = x(0, t, at, lanes=lanes)
                    scaled = value if eps is None else value * gain(at, lanes=lanes)
                    for d, w in zip(dot, weights):
                        d.add(scaled * w)
                    if square is not None:
                        square.add(value * value)
            for t, dot, square in zip(token, dots, squares):
                sums = [d.sum() for d in dot]
                if square is not None:
                    scale = T.rsqrt(square.sum() / T.float32(columns) + T.float32(eps))
                    sums = [s * scale for s in sums]
                with contextlib.ExitStack() as guard:
                    if tile > 1:
                        guard.enter_context(when(t < n))
                    for r in range(stack):
                        value = silu(sums[2 * r]) * sums[2 * r + 1] if gated else sums[r]
                        store(out, add, value, 0 if last else t, j * stack + r)

    return kernel(name, body)


def stack_of(rows, tile, gated):
    """How many of its output rows a thread takes: several share what is read of x, as long as enough threads remain to keep every
    core busy. With more tokens to a thread fewer rows do, and a small model keeps its short shaders."""
    stack, enough = (4, 1024) if tile == 1 else (1, 0) if gated else (2, 512)
    return stack if rows >= enough and rows % stack == 0 else 1


def silu(x):
    return x / (T.float32(1) + T.exp(-x))


def store(out, add, value, token, row):
    out.set(value if add is None else value + add(0, token, row), 0, token, row)
