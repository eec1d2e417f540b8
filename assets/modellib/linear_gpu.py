"""Matrix products for a GPU: workgroups that share what they read.

Decoding multiplies a matrix by one vector, which costs as much as reading the matrix: each weight is read once, by neighbouring
threads from neighbouring places. Prefill is computed in tiles, so that a weight is read once for all tokens of a tile and an
activation once for all its rows. Both include the preceding norm.
"""

from tvm.tirx import all as all_of

from schedule import T, lanes_of, when

ROWS = 4  # of the output that a workgroup of a matrix-vector product computes
LONGEST = 64  # threads along a row of it
DEPTH = 16  # columns of a tile
EACH = 4  # tokens and rows of a tile that are a thread's own


def vector(k, p, a):
    """A workgroup takes some rows; its threads share out their columns, then join their sums two by two."""
    lanes, steps = a.weight.lanes, p.columns // a.weight.step
    threads = ROWS
    while threads < min(steps, LONGEST):
        threads *= 2
    with k.groups(threads, (p.rows + ROWS - 1) // ROWS) as (thread, block):
        # The last block may exceed the rows: it repeats the last row and discards the result.
        rows = [T.min(block * ROWS + r, p.rows - 1) if p.rows % ROWS else block * ROWS + r for r in range(ROWS)]
        width = len(p.halves)
        sums = [k.local(lanes) for _ in range(width * ROWS + (p.eps is not None))]
        for variable in sums:
            variable.set(0)
        with T.serial(0, (steps + threads - 1) // threads) as i:
            at = i * threads + thread
            with when(at < steps):
                source = a.source(a.n - 1 if p.last else 0, at, sums[-1] if p.eps is not None else None)
                for h, half in enumerate(p.halves):
                    a.weight.add([row + half for row in rows], at, source, sums[h:ROWS * width:width])
        *totals, square = join(k, [variable.sum() for variable in sums], thread, threads) + ([] if p.eps is not None else [None])
        for r in range(ROWS):
            with when(all_of(thread == r, block * ROWS + r < p.rows)):
                scale = T.float32(1) if square is None else a.scale(square)
                a.store([value * scale for value in totals[r * width:(r + 1) * width]], 0, block * ROWS + r)


def join(k, values, thread, threads):
    """Sums each of the values over a workgroup's threads."""
    parts = [k.shared(threads) for _ in values]
    for part, value in zip(parts, values):
        part.set(value, thread)
    k.barrier()
    half = threads // 2
    while half:
        with when(thread < half):
            for part in parts:
                part.set(part(thread) + part(thread + half), thread)
        k.barrier()
        half //= 2
    return [part(0) for part in parts]


def tiles(k, p, a):
    """A workgroup takes as many tokens as rows of W, DEPTH columns at a time; a thread has EACH of both, a stride apart, so that
    neighbours read and write neighbouring places."""
    side = 16 if p.rows >= 2048 else 8  # threads; of a small matrix there are more tiles then
    size = side * EACH
    lanes, width = lanes_of(p.columns), len(p.halves)
    steps, deep = p.columns // lanes, DEPTH // lanes
    line = deep + 1  # a tile's lines are a vector apart, so that threads that read a column find it in different banks
    across = size // width  # rows of the output
    with k.groups(side * side, (p.rows + across - 1) // across, (a.n + size - 1) // size) as (thread, block, tokens):
        xs, ws = k.shared(size * line, lanes), k.shared(size * line, lanes)
        loads = range(size * deep // (side * side))
        sums = [[k.local(lanes) for _ in range(EACH)] for _ in range(EACH)]
        squares = [k.local(lanes) for _ in loads] if p.eps is not None else []
        for variable in sum(sums, squares):
            variable.set(0)
        with T.serial(0, (steps + deep - 1) // deep) as step:
            for j in loads:
                square = squares[j] if squares else None
                load(k, p, a, step, thread + j * side * side, square, block * across, tokens * size, xs, ws)
            k.barrier()
            multiply(k, sums, xs, ws, thread % side, thread // side, side, line)
            k.barrier()
        norms = k.shared(size * deep, lanes) if squares else None
        if squares:
            for j in loads:
                norms.set(squares[j].get(), thread + j * side * side)
            k.barrier()
        for m in range(EACH):
            mine = thread // side + m * side
            token = tokens * size + mine
            with when(token < a.n):
                scale, square = k.local(), k.local(lanes)
                scale.set(T.float32(1))
                if norms:
                    square.set(0)
                    for i in range(deep):
                        square.add(norms(mine * deep + i))
                    scale.set(a.scale(square.sum()))
                for r in range(EACH // width):
                    row = block * across + thread % side + r * side
                    with when(row < p.rows):
                        a.store([sums[m][r + half * (EACH // width)].sum() * scale.get() for half in range(width)], token, row)


def load(k, p, a, step, at, square, row, token, xs, ws):
    """Copies the vector numbered at of both tiles into workgroup memory, zeros beyond the matrix."""
    lanes, width = lanes_of(p.columns), len(p.halves)
    steps, deep = p.columns // lanes, DEPTH // lanes
    line, column = at // deep, step * deep + at % deep
    place = line * (deep + 1) + at % deep
    if steps % deep:
        for tile in (xs, ws):
            tile.set(T.broadcast(T.float32(0), lanes) if lanes > 1 else T.float32(0), place)
    with when(column < steps):
        value = k.keep(a.x(0, T.min(token + line, a.n - 1), column * lanes, lanes=lanes), lanes)
        xs.set(value if a.gain is None else value * a.gain(column * lanes, lanes=lanes), place)
        if square is not None:
            square.add(value * value)
        across = xs.buffer.shape[0] // (deep + 1) // width
        ws.set(a.weight.vector(T.min(row + line % across, p.rows - 1) + line // across * p.rows, column * lanes), place)


def multiply(k, sums, xs, ws, x, y, side, line):
    """Adds what the tiles in workgroup memory give to a thread's sums."""
    lanes = sums[0][0].lanes
    with T.serial(0, line - 1) as i:
        weights = [k.local(lanes) for _ in range(EACH)]
        source = k.local(lanes)
        for r, weight in enumerate(weights):
            weight.set(ws((x + r * side) * line + i))
        for m in range(EACH):
            source.set(xs((y + m * side) * line + i))
            for variable, weight in zip(sums[m], weights):
                variable.add(source.get() * weight.get())
