"""Kernels that edit the logits and make probabilities of them. The page asks for these for every token, greedy or not."""

from tvm.tirx import Select

from schedule import T, kernel, when

ROWS = 1  # distributions at a time: the page runs one sequence, and samples once from it
LEAST = -3.4028234663852886e38  # what a forbidden token's logit becomes
FINISHERS = 1024  # threads that write the probabilities


def add_bias(vocab):
    """logits[pos2seq[i], tokens[i]] += bias[i]."""

    def body(k):
        n, count = ROWS, k.size("count")
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
        n, count, sequences = ROWS, k.size("count"), ROWS
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
        n = sequences = ROWS
        logits = k.tensor("logits", (n, vocab))
        ids = k.tensor("ids", (sequences,), "int32")
        bits = k.tensor("bits", (n, (vocab + 31) // 32), "int32")
        with k.threads(vocab, sequences) as (token, s):
            allowed = T.bitwise_and(T.shift_right(bits(ids(s), token // 32), token % 32), 1)
            with when(allowed == 0):
                logits.set(T.float32(LEAST), ids(s), token)

    return kernel("apply_bitmask", body)


def groups_of(vocab):
    """How many groups a row's sum is made in: a power of two near the square root, so that groups and their terms are as many."""
    groups = 16
    while groups * groups < vocab:
        groups *= 2
    return min(groups, vocab)


def group_softmax(vocab):
    """For each group of a row of logits: its greatest value and the sum of the exponentials below it, at the temperature. Group g
    has the tokens g, g + groups, and so on: threads side by side read side by side."""
    groups = groups_of(vocab)

    def body(k):
        n = ROWS
        logits = k.tensor("logits", (n, 1, vocab))
        temperature = k.tensor("temperature", (n,))
        peak = k.tensor("peak", (n, groups))
        total = k.tensor("total", (n, groups))
        with k.threads(groups, n) as (group, row):
            count = (vocab - 1 - group) // groups + 1
            high, mass = k.local(), k.local()
            high.set(logits(row, 0, group))
            with T.serial(0, count) as i:
                high.set(T.max(high.get(), logits(row, 0, group + i * groups)))
            mass.set(T.float32(0))
            with T.serial(0, count) as i:
                mass.add(T.exp((logits(row, 0, group + i * groups) - high.get()) / temperature(row)))
            peak.set(high.get(), row, group)
            total.set(mass.get(), row, group)

    return kernel("softmax_groups", body), groups


def finish_softmax(vocab):
    """The probabilities, out of the groups' peaks and sums. Each thread adds those up, so there are few threads, with many tokens
    each."""
    groups, threads = groups_of(vocab), min(vocab, FINISHERS)

    def body(k):
        n = ROWS
        logits = k.tensor("logits", (n, 1, vocab))
        temperature = k.tensor("temperature", (n,))
        peak = k.tensor("peak", (n, groups))
        total = k.tensor("total", (n, groups))
        out = k.tensor("out", (n, 1, vocab))
        with k.threads(threads, n) as (first, row):
            high, mass = k.local(), k.local()
            high.set(peak(row, 0))
            with T.serial(0, groups) as g:
                high.set(T.max(high.get(), peak(row, g)))
            mass.set(T.float32(0))
            with T.serial(0, groups) as g:
                mass.add(total(row, g) * T.exp((peak(row, g) - high.get()) / temperature(row)))
            with T.serial(0, (vocab - 1 - first) // threads + 1) as i:
                token = first + i * threads
                out.set(T.exp((logits(row, 0, token) - high.get()) / temperature(row)) / mass.get(), row, 0, token)

    return kernel("softmax_finish", body)
