"""Kernels that sort the probabilities of a row, greatest first, ties by token.

A full sort is a merge sort. A partial sort finds only the likeliest HEAD tokens, which nearly always suffices for sampling. Both
give a permutation of all tokens; after the head, that of a partial sort has no defined order. A small vocabulary is fully sorted in
one pass.
"""

from tvm.tirx import all as all_of
from tvm.tirx import any as any_of

from sampling import ROWS
from schedule import T, kernel, when

HEAD = 64  # tokens that a partial sort puts in order
GROUPS = 1024  # that a partial sort deals the tokens out to
SMALL = 1024  # tokens of a vocabulary that is sorted in one pass


def head_of(vocab, sort):
    """How many tokens come out in order."""
    return HEAD if sort == "partial" and vocab > SMALL else vocab


def before(p, token, other, other_token):
    """Whether the token with probability p comes before the other."""
    return any_of(p > other, all_of(p == other, token < other_token))


def rank_tokens(vocab):
    """Sorts a small vocabulary: every token counts the ones before it."""

    def body(k):
        n = ROWS
        probs = k.tensor("probs", (n, vocab))
        out_probs = k.tensor("out_probs", (n, vocab))
        out_tokens = k.tensor("out_tokens", (n, vocab), "int32")
        with k.threads(vocab, n) as (token, row):
            mine, rank = k.local(), k.local(dtype="int32")
            mine.set(probs(row, token))
            rank.set(0)
            with T.serial(0, vocab) as other:
                with when(before(probs(row, other), other, mine.get(), token)):
                    rank.add(1)
            out_probs.set(mine.get(), row, rank.get())
            out_tokens.set(token, row, rank.get())

    return kernel("rank_tokens", body)


def find_peaks(vocab):
    """The first of each group's tokens in the order; group g has the tokens g, g + GROUPS, and so on."""

    def body(k):
        n = ROWS
        probs = k.tensor("probs", (n, vocab))
        peak = k.tensor("peak", (n, GROUPS))
        peak_token = k.tensor("peak_token", (n, GROUPS), "int32")
        with k.threads(GROUPS, n) as (group, row):
            high, at, token = k.local(), k.local(dtype="int32"), k.local(dtype="int32")
            high.set(probs(row, group))
            at.set(group)
            token.set(group + GROUPS)
            with T.While(token.get() < vocab):
                with when(probs(row, token.get()) > high.get()):
                    high.set(probs(row, token.get()))
                    at.set(token.get())
                token.add(GROUPS)
            peak.set(high.get(), row, group)
            peak_token.set(at.get(), row, group)

    return kernel("sort_peaks", body)


def choose_groups():
    """The HEAD groups whose peaks come first, by their peaks in order: outside them there is no token of the head."""

    def body(k):
        n = ROWS
        peak = k.tensor("peak", (n, GROUPS))
        peak_token = k.tensor("peak_token", (n, GROUPS), "int32")
        chosen = k.tensor("chosen", (n, HEAD))
        chosen_token = k.tensor("chosen_token", (n, HEAD), "int32")
        with k.threads(GROUPS, n) as (group, row):
            mine, token, rank = k.local(), k.local(dtype="int32"), k.local(dtype="int32")
            mine.set(peak(row, group))
            token.set(peak_token(row, group))
            rank.set(0)
            with T.serial(0, GROUPS) as other:
                with when(before(peak(row, other), peak_token(row, other), mine.get(), token.get())):
                    rank.add(1)
            with when(rank.get() < HEAD):
                chosen.set(mine.get(), row, rank.get())
                chosen_token.set(token.get(), row, rank.get())

    return kernel("sort_groups", body)


def rank_head(vocab):
    """The head in order. Of the tokens in the chosen groups only those count that come no later than the last group's peak, few
    more than the head has; each counts the tokens before it, in the groups whose peaks are."""
    size = (vocab + GROUPS - 1) // GROUPS

    def body(k):
        n = ROWS
        probs = k.tensor("probs", (n, vocab))
        chosen = k.tensor("chosen", (n, HEAD))
        chosen_token = k.tensor("chosen_token", (n, HEAD), "int32")
        head = k.tensor("head", (n, HEAD))
        head_token = k.tensor("head_token", (n, HEAD), "int32")
        with k.threads(size * HEAD, n) as (at, row):
            mine, token, group, other, rank = k.local(), *(k.local(dtype="int32") for _ in range(4))
            token.set(chosen_token(row, at // size) % GROUPS + at % size * GROUPS)
            mine.set(probs(row, T.min(token.get(), vocab - 1)))
            late = before(chosen(row, HEAD - 1), chosen_token(row, HEAD - 1), mine.get(), token.get())
            group.set(0)
            with when(any_of(token.get() >= vocab, late)):
                group.set(HEAD + 1)
            rank.set(0)
            with T.While(group.get() < HEAD):
                other.set(chosen_token(row, group.get()))
                with when(before(mine.get(), token.get(), chosen(row, group.get()), other.get())):
                    group.set(HEAD)
                with when(group.get() < HEAD):
                    other.set(other.get() % GROUPS)
                    with T.While(other.get() < vocab):
                        with when(before(probs(row, other.get()), other.get(), mine.get(), token.get())):
                            rank.add(1)
                        other.add(GROUPS)
                    group.add(1)
            with when(all_of(group.get() == HEAD, rank.get() < HEAD)):
                head.set(mine.get(), row, rank.get())
                head_token.set(token.get(), row, rank.get())

    return kernel("sort_head", body)


def place_tokens(vocab):
    """The permutation: the head, then every token in its own place. The places of the head's own tokens there go to the tokens
    that the head took the places of, the first to the first and so on."""

    def body(k):
        n = ROWS
        probs = k.tensor("probs", (n, vocab))
        head = k.tensor("head", (n, HEAD))
        head_token = k.tensor("head_token", (n, HEAD), "int32")
        out_probs = k.tensor("out_probs", (n, vocab))
        out_tokens = k.tensor("out_tokens", (n, vocab), "int32")

        def in_head(row, p, token):
            last, last_token = head(row, HEAD - 1), head_token(row, HEAD - 1)
            return any_of(p > last, all_of(p == last, token <= last_token))

        with k.threads(vocab, n) as (at, row):
            p, token, skip, i = k.local(), *(k.local(dtype="int32") for _ in range(3))
            p.set(probs(row, at))
            token.set(at)
            with when(at < HEAD):
                p.set(head(row, at))
                token.set(head_token(row, at))
            with when(all_of(at >= HEAD, in_head(row, p.get(), at))):
                skip.set(0)
                with T.serial(0, HEAD) as h:
                    with when(all_of(head_token(row, h) >= HEAD, head_token(row, h) < at)):
                        skip.add(1)
                i.set(0)
                with T.While(i.get() < HEAD):
                    p.set(probs(row, i.get()))
                    token.set(i.get())
                    i.add(1)
                    with when(T.Not(in_head(row, p.get(), token.get()))):
                        with when(skip.get() == 0):
                            i.set(HEAD)
                        skip.add(-1)
            out_probs.set(p.get(), row, at)
            out_tokens.set(token.get(), row, at)

    return kernel("sort_places", body)


def fan_of(vocab):
    """How many sorted runs a pass of the sort merges: few make more passes, many make long ones. A pass is taken to cost what
    300,000 steps of the bisection do, as measured on a software adapter."""

    def cost(fan):
        lengths = [1, *sort_lengths(vocab, fan)]
        return len(lengths) * 300_000 + sum(vocab * (fan - 1) * length.bit_length() for length in lengths)

    return min((2, 4, 8, 16, 32, 64), key=cost)


def sort_lengths(vocab, fan):
    """The run lengths that the passes after the first begin with."""
    lengths, length = [], fan
    while length < vocab:
        lengths.append(length)
        length *= fan
    return lengths


def sort_pass(vocab, first):
    """One pass of a stable merge sort, greatest first: every element finds its place among fan sorted runs by bisection.

    The first pass takes single elements as runs and numbers the tokens. Runs are powers of two long, but for the last one.
    """
    fan = fan_of(vocab)

    def body(k):
        n = ROWS
        probs = k.tensor("probs", (n, vocab))
        tokens = None if first else k.tensor("tokens", (n, vocab), "int32")
        length = 1 if first else T.cast(k.scalar("length", "int64"), "int32")
        out_probs = k.tensor("out_probs", (n, vocab))
        out_tokens = k.tensor("out_tokens", (n, vocab), "int32")
        with k.threads(vocab, n) as (at, row):
            mine, run, place, count, step = k.local(), *(k.local(dtype="int32") for _ in range(4))
            mine.set(probs(row, at))
            own, group = at // length, at // (length * fan) * fan
            place.set(group * length + at % length)
            with T.serial(0, fan) as f:
                run.set(group + f)
                begin = run.get() * length

                def before(i):
                    """Whether the run's element i comes before mine; ties go by position."""
                    other = probs(row, T.min(begin + i, vocab - 1))
                    return any_of(other > mine.get(), all_of(other == mine.get(), run.get() < own))

                with when(all_of(run.get() != own, begin < vocab)):
                    count.set(0)
                    step.set(length)
                    with T.While(all_of(step.get() > 0, count.get() < length)):
                        with when(all_of(begin + count.get() + step.get() <= vocab, before(count.get() + step.get() - 1))):
                            count.add(step.get())
                        step.set(step.get() // 2)
                    place.add(count.get())
            out_probs.set(mine.get(), row, place.get())
            out_tokens.set(T.cast(at, "int32") if first else tokens(row, at), row, place.get())

    return kernel("sort_tokens" if first else "merge_tokens", body)
