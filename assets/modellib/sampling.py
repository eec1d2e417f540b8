"""Kernels between the logits and the next token: edits of the logits, softmax, sort, nucleus sampling.

The page runs softmax, sort and sampling for every token, greedy or not.
"""

from tvm.tirx import Select
from tvm.tirx import all as all_of
from tvm.tirx import any as any_of

from schedule import T, kernel, when

LEAST = -3.4028234663852886e38  # what a forbidden token's logit becomes


def add_bias(vocab):
    """logits[pos2seq[i], tokens[i]] += bias[i]."""

    def body(k):
        n, count = k.size("n"), k.size("count")
        logits = k.tensor("logits", (n, vocab))
        rows = k.tensor("rows", (count,), "int32")
        tokens = k.tensor("tokens", (count,), "int32")
        bias = k.tensor("bias", (count,))
        with k.threads(count) as (i,):
            logits.set(logits(rows(i), tokens(i)) + bias(i), rows(i), tokens(i))

    return kernel("apply_logit_bias", body)


def punish(vocab):
    """Presence, frequency and repetition penalties for the tokens that have appeared."""

    def body(k):
        n, count, sequences = k.size("n"), k.size("count"), k.size("sequences")
        logits = k.tensor("logits", (n, vocab))
        ids = k.tensor("ids", (sequences,), "int32")
        rows = k.tensor("rows", (count,), "int32")
        tokens = k.tensor("tokens", (count,), "int32")
        seen = k.tensor("seen", (count,), "int32")
        penalties = k.tensor("penalties", (sequences, 3))
        with k.threads(count) as (i,):
            sequence = rows(i)
            logit = k.local()
            off = penalties(sequence, 0) + T.cast(seen(i), "float32") * penalties(sequence, 1)
            logit.set(logits(ids(sequence), tokens(i)) - off)
            repetition = penalties(sequence, 2)
            kept = Select(logit.get() > T.float32(0), logit.get() / repetition, logit.get() * repetition)
            logits.set(kept, ids(sequence), tokens(i))

    return kernel("apply_penalty", body)


def mask(vocab):
    """Forbids every token whose bit is not set."""

    def body(k):
        n, sequences = k.size("n"), k.size("sequences")
        logits = k.tensor("logits", (n, vocab))
        ids = k.tensor("ids", (sequences,), "int32")
        bits = k.tensor("bits", (n, (vocab + 31) // 32), "int32")
        with k.threads(vocab, sequences) as (token, s):
            allowed = T.bitwise_and(T.shift_right(bits(ids(s), token // 32), token % 32), 1)
            with when(allowed == 0):
                logits.set(T.float32(LEAST), ids(s), token)

    return kernel("apply_bitmask", body)


def chunk_of(vocab):
    """A power of two near the square root: both halves of the softmax then loop as often."""
    chunk = 16
    while chunk * chunk < vocab:
        chunk *= 2
    return chunk


def chunk_softmax(vocab):
    """For each chunk of a row of logits: its greatest value and the sum of the exponentials below it, at the temperature."""
    chunk = chunk_of(vocab)
    chunks = (vocab + chunk - 1) // chunk

    def body(k):
        n = k.size("n")
        logits = k.tensor("logits", (n, 1, vocab))
        temperature = k.tensor("temperature", (n,))
        peak = k.tensor("peak", (n, chunks))
        total = k.tensor("total", (n, chunks))
        with k.threads(chunks, n) as (c, row):
            end = T.min(chunk, vocab - c * chunk)
            high, mass = k.local(), k.local()
            high.set(logits(row, 0, c * chunk))
            with T.serial(0, end) as i:
                high.set(T.max(high.get(), logits(row, 0, c * chunk + i)))
            mass.set(T.float32(0))
            with T.serial(0, end) as i:
                mass.add(T.exp((logits(row, 0, c * chunk + i) - high.get()) / temperature(row)))
            peak.set(high.get(), row, c)
            total.set(mass.get(), row, c)

    return kernel("softmax_chunks", body), chunks


def finish_softmax(vocab):
    """The probabilities, out of the chunks' peaks and sums."""
    chunk = chunk_of(vocab)
    chunks = (vocab + chunk - 1) // chunk

    def body(k):
        n = k.size("n")
        logits = k.tensor("logits", (n, 1, vocab))
        temperature = k.tensor("temperature", (n,))
        peak = k.tensor("peak", (n, chunks))
        total = k.tensor("total", (n, chunks))
        out = k.tensor("out", (n, 1, vocab))
        with k.threads(vocab, n) as (token, row):
            high, mass = k.local(), k.local()
            high.set(peak(row, 0))
            with T.serial(0, chunks) as c:
                high.set(T.max(high.get(), peak(row, c)))
            mass.set(T.float32(0))
            with T.serial(0, chunks) as c:
                mass.add(total(row, c) * T.exp((peak(row, c) - high.get()) / temperature(row)))
            out.set(T.exp((logits(row, 0, token) - high.get()) / temperature(row)) / mass.get(), row, 0, token)

    return kernel("softmax_finish", body)


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
        n = k.size("n")
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


def nucleus(vocab):
    """The token that a uniform number picks from the smallest set of likeliest tokens whose mass reaches top_p.

    One thread walks a row of sorted probabilities and stops early: the nucleus of a usual distribution is short.
    """

    def body(k):
        n, samples = k.size("n"), k.size("samples")
        probs = k.tensor("probs", (n, vocab))
        tokens = k.tensor("tokens", (n, vocab), "int32")
        uniform = k.tensor("uniform", (samples,))
        rows = k.tensor("rows", (samples,), "int32")
        top_p = k.tensor("top_p", (n,))
        out = k.tensor("out", (samples,), "int32")
        with k.threads(samples) as (s,):
            row = rows(s)
            count, mass, at, below = k.local(dtype="int32"), k.local(), k.local(dtype="int32"), k.local()
            count.set(0)
            mass.set(T.float32(0))
            with T.While(all_of(count.get() < vocab, mass.get() < top_p(row))):
                mass.add(probs(row, count.get()))
                count.add(1)
            at.set(0)
            below.set(probs(row, 0))
            with T.While(all_of(at.get() < count.get() - 1, below.get() <= uniform(s) * mass.get())):
                at.add(1)
                below.add(probs(row, at.get()))
            out.set(tokens(row, at.get()), s)

    return kernel("sample_nucleus", body)
