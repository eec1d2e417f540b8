"""The kernel that picks a token from the nucleus: the smallest set of likeliest tokens, ties by token, whose mass reaches top_p.

Usually the nucleus lies within the head of the sorted probabilities, which one thread walks. Otherwise a bisection finds its
smallest probability, and how many tokens with that probability belong to it. This needs no order.
"""

import contextlib

from tvm.tirx import Select
from tvm.tirx import all as all_of
from tvm.tirx import any as any_of

from sampling import ROWS
from schedule import T, kernel, when

BLOCKS = 256  # in which a row is summed: sums of few numbers are exact enough
ROUNDS = 30  # of a bisection between 0 and the bits of 1.0


def nucleus(vocab, head, shared):
    """The token that a uniform number picks; the first head probabilities are in order. shared: a workgroup shares the work behind
    the head, else a thread does it alone."""

    def body(k):
        n = samples = ROWS
        probs = k.tensor("probs", (n, vocab))
        tokens = k.tensor("tokens", (n, vocab), "int32")
        uniform = k.tensor("uniform", (samples,))
        rows = k.tensor("rows", (samples,), "int32")
        top_p = k.tensor("top_p", (n,))
        out = k.tensor("out", (samples,), "int32")
        beyond = head < vocab
        group = k.groups(BLOCKS, samples) if shared and beyond else k.threads(samples)
        with group as ids:
            s, thread = ids[-1], ids[0] if shared and beyond else None
            row = rows(s)
            count, mass, at, below = k.local(dtype="int32"), k.local(), k.local(dtype="int32"), k.local()
            count.set(0)
            mass.set(T.float32(0))
            with T.While(all_of(count.get() < head, mass.get() < top_p(row))):
                mass.add(probs(row, count.get()))
                count.add(1)
            at.set(0)
            below.set(probs(row, 0))
            if beyond:
                far = Beyond(k, vocab, head, thread, lambda i: probs(row, i), lambda i: tokens(row, i))
                with when(mass.get() < top_p(row)):
                    count.set(0)
                    far.pick(uniform(s), top_p(row), at)
            with T.While(all_of(at.get() < count.get() - 1, below.get() <= uniform(s) * mass.get())):
                at.add(1)
                below.add(probs(row, at.get()))
            with when(thread == 0) if thread is not None else contextlib.nullcontext():
                out.set(tokens(row, at.get()), s)

    return kernel("sample_nucleus", body)


class Beyond:
    """Picks from a nucleus that is larger than the head; p(i) and token(i) read the row. Every thread of a workgroup gets the
    same result; thread is None if there is only one.

    The nucleus has the tokens whose bits exceed low, with mass above in all, and the first of those whose bits equal low. The
    bits of numbers from 0 have the order of the numbers.
    """

    def __init__(self, k, vocab, head, thread, p, token):
        self._vocab, self._head, self._p, self._token = vocab, head, p, token
        self._thread, self._barrier = thread, k.barrier
        self._parts = None if thread is None else k.shared(BLOCKS)
        self._size = (vocab + BLOCKS - 1) // BLOCKS
        self._part, self._sum, self._goal = k.local(), k.local(), k.local()
        self._above, self._ties, self._order = k.local(), k.local(), k.local()
        self._low, self._high, self._middle = (k.local(dtype="int32") for _ in range(3))
        self._first, self._step, self._found, self._i = (k.local(dtype="int32") for _ in range(4))

    def pick(self, uniform, top_p, at):
        """Sets at to the position that the uniform number picks."""
        self._low.set(-1)
        self._above.set(T.float32(1))  # all tokens; what their sum lacks to 1 is rounding, and goes to the first
        self._ties.set(T.float32(0))
        with when(top_p < T.float32(1)):
            self._bisect(top_p)
        tie = self._tie()
        self._goal.set(uniform * (self._above.get() + self._ties.get() * tie))
        order = T.floor((self._goal.get() - self._above.get()) / tie)
        self._order.set(T.max(T.min(order, self._ties.get() - T.float32(1)), T.float32(0)) + T.float32(0.5))
        self._first.set(Select(all_of(self._ties.get() > T.float32(0), self._goal.get() >= self._above.get()), 1, 0))
        self._walk(at)

    def _bits(self, i):
        return T.reinterpret("int32", self._p(i))

    def _tie(self):
        return T.max(T.reinterpret("float32", T.max(self._low.get(), 0)), T.float32(1e-30))

    def _bisect(self, top_p):
        """Finds low, the greatest bits that top_p of the mass has at least, what is above, and how many ties reach top_p."""
        self._low.set(0)
        self._high.set(self._bits(self._head - 1) + 1)
        with T.serial(0, ROUNDS):
            self._middle.set((self._low.get() + self._high.get()) // 2)
            self._add_up(lambda i: Select(self._bits(i) >= self._middle.get(), self._p(i), T.float32(0)))
            with when(self._sum.get() >= top_p):
                self._low.set(self._middle.get())
            with when(self._sum.get() < top_p):
                self._high.set(self._middle.get())
        self._add_up(lambda i: Select(self._bits(i) > self._low.get(), self._p(i), T.float32(0)))
        self._above.set(self._sum.get())
        self._add_up(lambda i: Select(self._bits(i) == self._low.get(), T.float32(1), T.float32(0)))
        self._ties.set(T.max(T.min(T.ceil((top_p - self._above.get()) / self._tie()), self._sum.get()), T.float32(1)))

    def _add_up(self, weight):
        """Sets the sum to that of all tokens' weights. Here the blocks need not follow one another: those of threads side by side
        are interleaved, so that they read side by side."""
        self._sum.set(T.float32(0))
        self._blocks(weight, True, lambda block: self._sum.add(self._part.get()), 1 if self._thread is None else BLOCKS)

    def _blocks(self, weight, wanted, visit, stride=1):
        """Visits each block in turn, with its part of the sum of the weights, as long as it is wanted. Threads take a block each; a
        barrier stands where no thread can miss it."""
        if self._thread is not None:
            self._add_block(self._thread, weight, stride)
            self._parts.set(self._part.get(), self._thread)
            self._barrier()
        with T.serial(0, BLOCKS) as block, contextlib.nullcontext() if wanted is True else when(wanted):
            if self._thread is None:
                self._add_block(block, weight, stride)
            else:
                self._part.set(self._parts(block))
            visit(block)
        if self._thread is not None:
            self._barrier()

    def _add_block(self, block, weight, stride):
        first, end = (block * self._size, self._end(block)) if stride == 1 else (block, self._vocab)
        self._part.set(T.float32(0))
        self._i.set(first)
        with T.While(self._i.get() < end):
            self._part.add(weight(self._i.get()))
            self._i.add(stride)

    def _end(self, block):
        return T.min((block + 1) * self._size, self._vocab)

    def _weight(self, i):
        """What a token counts in a step of the walk: its mass if it is above; then 1 for a tie in the head or displaced by it, whose
        ids are the lowest; then 1 for another tie."""
        bits, early = self._bits(i), any_of(i < self._head, self._token(i) < self._head)
        counted = all_of(bits == self._low.get(), early == (self._step.get() == 1))
        mass = Select(bits > self._low.get(), self._p(i), T.float32(0))
        return Select(self._step.get() == 0, mass, Select(counted, T.float32(1), T.float32(0)))

    def _walk(self, at):
        """Goes through the tokens until their mass exceeds the goal, or through the ties until there are as many as the order."""
        self._found.set(0)
        self._sum.set(T.float32(0))
        with T.serial(0, 3) as step:
            self._step.set(step)
            with when(step == 1):
                self._sum.set(T.float32(0))
                self._goal.set(self._order.get())
            wanted = all_of(self._found.get() == 0, step >= self._first.get())
            self._blocks(self._weight, wanted, lambda block: self._visit(block, at))

    def _visit(self, block, at):
        with when(self._sum.get() + self._part.get() > self._goal.get()):
            self._find(block, at)
        with when(self._found.get() == 0):
            self._sum.add(self._part.get())

    def _find(self, block, at):
        """The token in the block; its last one if rounding leaves none."""
        self._found.set(1)
        self._i.set(block * self._size)
        with T.While(all_of(self._found.get() == 1, self._i.get() < self._end(block))):
            self._part.set(self._weight(self._i.get()))
            self._sum.add(self._part.get())
            with when(self._part.get() > T.float32(0)):
                at.set(self._i.get())
            with when(self._sum.get() > self._goal.get()):
                self._found.set(2)
            self._i.add(1)
