"""Attention for a GPU: workgroups that share queries, keys and scores.

Every kernel processes positions in steps with an online softmax: sums are rescaled when a greater score comes.
"""

from tvm.tirx import all as all_of

from schedule import MOST_SHARED, MOST_THREADS, T, when

LEAST = -1e30  # score of an invisible position
ACROSS = 16  # threads of a token in a prompt


def splat(value, lanes):
    return T.broadcast(value, lanes) if lanes > 1 else value


class Running:
    """The softmax's state of a thread, which owns some vectors of the output."""

    def __init__(self, k, lanes, vectors):
        self.high, self.mass, self._share, self._lanes = k.local(), k.local(), k.local(), lanes
        self._top = k.local()
        self.out = [k.local(lanes) for _ in range(vectors)]
        self.high.set(T.float32(LEAST))
        self.mass.set(T.float32(0))
        for variable in self.out:
            variable.set(0)

    def rise(self, scores, places):
        """Takes the greatest of the scores at the places that places(j), j below its count, names."""
        count, place = places
        self._top.set(self.high.get())
        with T.serial(0, count) as j:
            self._top.set(T.max(self._top.get(), scores(place(j))))
        self._share.set(T.exp(self.high.get() - self._top.get()))
        self.high.set(self._top.get())
        self.mass.set(self.mass.get() * self._share.get())
        for variable in self.out:
            variable.set(variable.get() * splat(self._share.get(), self._lanes))

    def take(self, score, values):
        """Adds a position; values are the vectors of it that the thread owns."""
        self._share.set(T.exp(score - self.high.get()))
        self.mass.add(self._share.get())
        for variable, value, owned in zip(self.out, *values):
            with when(owned):
                variable.add(splat(self._share.get(), self._lanes) * value)


def split_positions(k, h, a):
    """Decoding: a workgroup takes a head. A thread scores one position of a step; then groups of threads, with one for each vector
    of the output, sum up a share of the positions each; the groups' sums are joined in the end."""
    columns = h.width // h.lanes
    groups = max(1, min(32, MOST_THREADS // columns))
    threads = groups * columns
    with k.groups(threads, h.heads, a.n) as (thread, head, t):
        column, group = thread % columns, thread // columns
        begin, end = a.span(t)
        query, scores = k.shared(columns, h.lanes), k.shared(max(threads, 2 * groups))
        with when(thread < columns):
            query.set(a.q(t, head, thread * h.lanes, lanes=h.lanes) * splat(a.scale, h.lanes), thread)
        state, dot = Running(k, h.lanes, 1), k.local(h.lanes)
        k.barrier()
        with T.serial(0, (end - begin + threads - 1) // threads) as step:
            first = begin + step * threads
            scores.set(T.float32(LEAST), thread)
            with when(first + thread < end):
                dot.set(0)
                with T.serial(0, columns) as i:
                    dot.add(query(i) * a.key(a.place(t, first + thread), head // h.group, i * h.lanes))
                scores.set(h.score(dot.sum()), thread)
            k.barrier()
            state.rise(scores, (columns, lambda j: j * groups + group))
            with T.serial(0, columns) as j:
                with when(first + j * groups + group < end):
                    value = a.value(a.place(t, first + j * groups + group), head // h.group, column * h.lanes)
                    state.take(scores(j * groups + group), ([value], [True]))
            k.barrier()
        join(k, h, a, state, scores, (t, head), (thread, column, group), (columns, groups))


def join(k, h, a, state, scores, at, mine, sizes):
    """Joins the groups' sums, each of which is relative to its own greatest score. The scores' memory, no longer needed, takes what
    the groups have to tell one another: left to itself TVM would find memory of another type for it."""
    (t, head), (thread, column, group), (columns, groups) = at, mine, sizes
    sums = k.shared(groups * columns, h.lanes)
    sums.set(state.out[0].get(), thread)
    with when(column == 0):
        scores.set(state.high.get(), group)
        scores.set(state.mass.get(), groups + group)
    k.barrier()
    with when(thread < columns):
        top, mass, share, out = k.local(), k.local(), k.local(), k.local(h.lanes)
        top.set(scores(0))
        with T.serial(0, groups) as g:
            top.set(T.max(top.get(), scores(g)))
        mass.set(T.float32(0))
        out.set(0)
        with T.serial(0, groups) as g:
            share.set(T.exp(scores(g) - top.get()))
            mass.add(share.get() * scores(groups + g))
            out.add(splat(share.get(), h.lanes) * sums(g * columns + thread))
        a.out.set(out.get() / splat(mass.get(), h.lanes), t, head, thread * h.lanes, lanes=h.lanes)
        with when(thread == 0):
            a.lse.set(top.get() + T.log(mass.get()), t, head)


def tile_of(width):
    """How many tokens and positions a workgroup has in its memory at once."""
    for tokens, positions in ((16, 16), (8, 16), (8, 8), (4, 8), (4, 4), (2, 4)):
        if 4 * ((tokens + positions) * (width + 4) + tokens * positions) <= MOST_SHARED:
            return tokens, positions
    raise AssertionError(f"no tile for heads of {width}")


def tiles(k, h, a):
    """A prompt: a workgroup takes a head of some tokens, whose queries it holds, and walks over the keys in steps that it holds
    too. A thread scores one position for one token, then sums up its share of the token's output."""
    tokens, positions = tile_of(h.width)
    columns = h.width // h.lanes
    line, threads = columns + 1, tokens * ACROSS
    with k.groups(threads, h.heads, (a.n + tokens - 1) // tokens) as (thread, head, block):
        row, column = thread // ACROSS, thread % ACROSS
        t = T.min(block * tokens + row, a.n - 1)
        queries, keys, scores = (
            k.shared(tokens * line, h.lanes), k.shared(positions * line, h.lanes), k.shared(tokens * positions))
        owned = range(0, columns, ACROSS)
        state, dot, score = Running(k, h.lanes, len(owned)), k.local(h.lanes), k.local()
        for i in owned:
            with when(i + column < columns):
                value = a.q(t, head, (i + column) * h.lanes, lanes=h.lanes)
                queries.set(value * splat(a.scale, h.lanes), row * line + i + column)
        begin, end = a.span(block * tokens)[0], a.span(T.min(block * tokens + tokens - 1, a.n - 1))[1]
        seen_from, seen_to = a.span(t)
        with T.serial(0, (end - begin + positions - 1) // positions) as step:
            first = begin + step * positions
            with T.serial(0, (positions * columns + threads - 1) // threads) as j:
                at = j * threads + thread
                with when(at < positions * columns):
                    key = a.key(a.place(0, T.min(first + at // columns, end - 1)), head // h.group, at % columns * h.lanes)
                    keys.set(key, at // columns * line + at % columns)
            k.barrier()
            with when(column < positions):
                dot.set(0)
                with T.serial(0, columns) as i:
                    dot.add(queries(row * line + i) * keys(column * line + i))
                scores.set(T.float32(LEAST), row * positions + column)
                with when(all_of(first + column >= seen_from, first + column < seen_to)):
                    scores.set(h.score(dot.sum()), row * positions + column)
            k.barrier()
            state.rise(scores, (positions, lambda j: row * positions + j))
            with T.serial(0, positions) as j:
                score.set(scores(row * positions + j))
                with when(score.get() > T.float32(LEAST)):
                    values = [a.value(a.place(0, first + j), head // h.group, (i + column) * h.lanes) for i in owned]
                    state.take(score.get(), (values, [i + column < columns for i in owned]))
        with when(block * tokens + row < a.n):
            mass = T.max(state.mass.get(), T.float32(1e-30)) if h.window else state.mass.get()
            for i, out in zip(owned, state.out):
                with when(i + column < columns):
                    a.out.set(out.get() / splat(mass, h.lanes), t, head, (i + column) * h.lanes, lanes=h.lanes)
            with when(column == 0):
                a.lse.set(state.high.get() + T.log(mass), t, head)


def merge(k, h, a):
    """Some threads a head: the first of them reads and writes the logs, and shares the weights."""
    rows = 4
    with k.groups(rows * ACROSS, (a.n * h.heads + rows - 1) // rows) as (thread, block):
        row, column = thread // ACROSS, thread % ACROSS
        at = block * rows + row
        t, head = at // h.heads, at % h.heads
        weights = k.shared(2 * rows)
        with when(all_of(column == 0, at < a.n * h.heads)):
            high, total = k.local(), k.local()
            ours, theirs = k.local(), k.local()
            for variable, share in zip((ours, theirs), a.shares(t, head)):
                variable.set(share)
            high.set(a.high(t, head))
            total.set(ours.get() + theirs.get())
            weights.set(ours.get() / total.get(), 2 * row)
            weights.set(theirs.get() / total.get(), 2 * row + 1)
            a.lse.set(high.get() + T.log(total.get()), t, head)
        k.barrier()
        with T.serial(0, (h.width + ACROSS - 1) // ACROSS) as j:
            i = j * ACROSS + column
            with when(all_of(i < h.width, at < a.n * h.heads)):
                a.out.set(a.out(t, head, i) * weights(2 * row) + a.other(t, head, i) * weights(2 * row + 1), t, head, i)
