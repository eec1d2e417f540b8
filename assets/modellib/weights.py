"""The types of matrices: how each is stored, and how kernels get its values.

A quantised matrix keeps the bits of GGUF's blocks: q_weight has the numbers of a row, q_scale what scales them. Only vectors of
q_weight are read, so that it can be declared as vectors. Kernels read a row in groups of 32 values:

    value = scale * number - least

A number is the sum of terms: bits of a word, left where they are. A power of two then divides the other side of a product, once
for all rows, because shifts of vectors are slow on software adapters.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tvm.tirx import Shuffle

from schedule import T

GROUP = 32  # values that share what is read with them
FOURS = GROUP // 4  # vectors of a group


@dataclass(frozen=True)
class Plain:
    """Numbers of a dtype, or else the model's."""

    dtype: str | None = None

    def tensors(self, columns, dtype):
        """Name, dtype and columns of what a matrix is stored in."""
        yield "weight", self.dtype or dtype, columns


@dataclass(frozen=True)
class Quantised:
    """Numbers and their scales. The functions get words, which returns a reader of the words of q_weight from a place on; extra,
    which reads a word of q_scale; the group; and the number of groups in a row.

    terms returns pairs: what a term is multiplied by, None for 1, and a function that gives the Fields of a vector of the group.
    scales returns pairs of scale and least value, None for 0: one for the group, or one for each half of it."""

    block: int  # values
    words: int  # of q_weight, for a block
    extra: Callable  # words of q_scale, for a number of blocks
    terms: Callable
    scales: Callable
    floats: bool = False  # q_scale has the model's dtype, as in MLC's packages

    def tensors(self, columns, dtype):
        blocks = columns // self.block
        yield "q_weight", "uint32", blocks * self.words
        yield "q_scale", dtype if self.floats else "uint32", self.extra(blocks)


@dataclass(frozen=True)
class Fields:
    """Four fields of a word: field = bits / 2**(first + lane * step) + offset."""

    bits: object  # four whole numbers
    first: int
    step: int
    offset: tuple

    def moves(self):
        """What the bits, or the other side of a product, are multiplied by."""
        return vector_of([-self.first - lane * self.step for lane in range(4)], power)

    def offsets(self):
        return vector_of(self.offset)


def power(n):
    """2**n by its bits, because TVM prints few digits."""
    return T.reinterpret("float32", T.uint32(127 + n << 23))


def vector_of(numbers, kind=T.float32):
    return Shuffle([kind(n) for n in numbers], list(range(4)))


def fields(word, shift, step, count, offset=0):
    """Fields of count bits, step apart, the first of them from shift on. The offset is added to each."""
    if not isinstance(shift, int):
        word, shift = word >> shift.astype("uint32"), 0
    offsets, last = [offset] * 4, shift + 3 * step + count
    if last == 32:  # a bit that would be a sign
        word = word ^ T.uint32(1 << 31)
        offsets[3] += 1 << (count - 1)
    masks = vector_of([((1 << count) - 1) << shift + lane * step for lane in range(4)],
                      lambda mask: T.reinterpret("int32", T.uint32(mask)))
    return Fields(T.broadcast(word.astype("int32"), 4) & masks, shift, step, tuple(offsets))


def field(word, shift, count):
    """count bits of a word from shift on."""
    return word >> (T.uint32(shift) if isinstance(shift, int) else shift.astype("uint32")) & T.uint32((1 << count) - 1)


def number(word):
    return word.astype("int32").astype("float32")


def half(word, index):
    """Float16 number index, 0 or 1, of a word, since adapters may lack float16 or flush its small numbers. With the exponent of
    a float32, a small one has a leading bit too many and an exponent too low by one."""
    h = field(word, index * 16, 16)
    usual = T.reinterpret("float32", ((h & T.uint32(0x7FFF)) << T.uint32(13)) + T.uint32(112 << 23))
    size = T.min(usual, usual + usual - power(-14))
    return T.reinterpret("float32", T.reinterpret("uint32", size) | (h & T.uint32(0x8000)) << T.uint32(16))


def halves(blocks):
    """Words for a float16 a block."""
    return (blocks + 1) // 2


def q4_0(words, extra, group, groups):
    low = words(group * 4)
    return [(None, lambda i: fields(low(i // 2), i % 2 * 16, 4, 4, -7))]


def nibbles(words, group, offset=0):
    """Four bits of values j and j+16 in byte j."""
    low = words(group * 4)
    return None, lambda i: fields(low(i % 4), i // 4 * 4, 8, 4, offset)


def q5(offset):
    def terms(words, extra, group, groups):
        fifth = extra(group)
        return [nibbles(words, group, offset), (T.float32(16), lambda i: fields(fifth, i * 4, 1, 1))]

    return terms


def q8_0(words, extra, group, groups):
    word = words(group * 8)
    return [(None, lambda i: fields(word(i) ^ T.uint32(0x80808080), 0, 8, 8, -128))]  # of signed bytes


def pair(word):
    """Scale and least value of a block."""
    return [(half(word, 0), -half(word, 1))]


def single(first):
    """A float16 for each block, behind first words for each of them."""
    return lambda extra, group, groups: [(half(extra(groups * first + group // 2), group % 2), None)]


def masked(read, mask, shift, factor=1.0):
    """A term of the same bits of each byte, which a shift moves. They stay where they are; the term is divided instead."""
    moved = T.uint32(mask) << shift.astype("uint32")
    by = T.float32(factor) / (T.uint32(1) << shift.astype("uint32")).astype("float32")
    return by, lambda i: fields(read(i) & moved, 0, 8, 8)


def large(words, group, block, first=0):
    """The low four bits of a group of a block of 256: two groups share their bytes."""
    return masked(words(group // 8 * block + first + group % 8 // 2 * 8), 0x0F0F0F0F, group % 2 * 4)


def q5_k(words, extra, group, groups):
    fifth = words(group // 8 * 40)
    return [large(words, group, 40, 8), masked(fifth, 0x01010101, group % 8, 16.0)]


def q6_k(words, extra, group, groups):
    side, quarter = group % 8 // 4, group % 4
    low, high = words(group // 8 * 48 + side * 16 + quarter % 2 * 8), words(group // 8 * 48 + 32 + side * 8)
    return [masked(low, 0x0F0F0F0F, quarter // 2 * 4), masked(high, 0x03030303, quarter * 2, 16.0)]


def choose(second, a, b):
    """a, or b if second is 1, without a branch."""
    return a ^ (a ^ b) & T.uint32(0) - second


def k_scales(extra, group, groups):
    """Scale and least value of one of eight groups, six bits each, times those of the block."""
    first, shift = group // 8 * 4, group % 4 * 8
    block, a, b, c = (extra(first + i) for i in range(4))
    late = (group % 8 // 4).astype("uint32")
    scale = choose(late, field(a, shift, 6), field(c, shift, 4) | field(a, shift + 6, 2) << T.uint32(4))
    least = choose(late, field(b, shift, 6), field(c, shift + 4, 4) | field(b, shift + 6, 2) << T.uint32(4))
    return [(half(block, 0) * number(scale), half(block, 1) * number(least))]


def q6_k_scales(extra, group, groups):
    block, word = group // 8, extra(group // 8 * 4 + group % 8 // 2)
    of_block = half(extra(groups // 8 * 4 + block // 2), block % 2)
    scales = [of_block * (number(field(word, group % 2 * 16 + at, 8) ^ T.uint32(128)) - T.float32(128)) for at in (0, 8)]
    return [(scale, scale * T.float32(32)) for scale in scales]


TYPES = {
    "plain": Plain(),
    "f32": Plain("float32"),
    "f16": Plain("float16"),
    "q4_0": Quantised(32, 4, lambda n: n, q4_0, lambda extra, group, _: [(extra(group), None)], floats=True),
    "q4_1": Quantised(32, 4, lambda n: n, lambda words, extra, group, _: [nibbles(words, group)],
                      lambda extra, group, _: pair(extra(group))),
    "q5_0": Quantised(32, 4, lambda n: n + halves(n), q5(-16), single(1)),
    "q5_1": Quantised(32, 4, lambda n: 2 * n, q5(0), lambda extra, group, groups: pair(extra(groups + group))),
    "q8_0": Quantised(32, 8, halves, q8_0, single(0)),
    "q4_k": Quantised(256, 32, lambda n: 4 * n, lambda words, extra, group, _: [large(words, group, 32)], k_scales),
    "q5_k": Quantised(256, 40, lambda n: 4 * n, q5_k, k_scales),
    "q6_k": Quantised(256, 48, lambda n: 4 * n + halves(n), q6_k, q6_k_scales),
}
