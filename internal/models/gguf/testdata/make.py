"""Writes the golden files beside it: for each tensor type random blocks, then the values that the Python package gguf reads
from them, as raw little-endian float32. Run it by hand, with that package installed: python make.py"""

import pathlib

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

# Where a type's blocks have 16-bit floats; the other bytes may hold anything.
HALVES = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}

# Zeros, the smallest and largest subnormals, the smallest and largest normals, and some of every size between.
SCALES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00]


def blocks(kind, random):
    values, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    count = {1: 1000, 32: 40, 256: 14}[values]
    data = random.integers(0, 256, (count, size), dtype=numpy.uint8)
    if kind in ("F32", "BF16"):  # not infinite, and a number
        data[:, -2] &= numpy.where(data[:, -1] & 0x7F == 0x7F, 0x7F, 0xFF).astype(numpy.uint8)
    for n, at in enumerate(HALVES[kind]):
        finite = random.integers(0, 0x7C00, count, dtype=numpy.uint16) | random.integers(0, 2, count, dtype=numpy.uint16) << 15
        some = numpy.array(SCALES, dtype=numpy.uint16)
        if n > 0:  # each scale meets different minima
            some = numpy.roll(some, 5)
        finite[: len(some)] = some
        data[:, at : at + 2] = finite.astype("<u2").view(numpy.uint8).reshape(count, 2)
    data[-1, [i for i in range(size) if not any(i in (at, at + 1) for at in HALVES[kind])]] = 0
    return data


def main():
    here = pathlib.Path(__file__).parent
    random = numpy.random.default_rng(20260101)
    for kind in HALVES:
        data = blocks(kind, random)
        values = quants.dequantize(data, GGMLQuantizationType[kind]).astype("<f4")
        assert numpy.isfinite(values).all(), kind
        (here / f"{kind.lower()}.golden").write_bytes(data.tobytes() + values.tobytes())


if __name__ == "__main__":
    main()
