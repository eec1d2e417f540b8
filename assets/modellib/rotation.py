"""The rotation of queries and keys by their positions.

The cache rotates with one table, by itself. A model that normalises heads first, or whose layers rotate in two ways, does so
before the cache, whose kernel then only splits. So does one whose cache has another dtype, to round only once.
"""

import numpy as np

from schedule import T
from shape import cache_dtype

ANGLES = 64  # positions in the fine half of a table


def before_cache(shape):
    return shape["qk_norm"] or shape["rope_local_theta"] > 0 or cache_dtype(shape) != shape["dtype"]


def coarse(shape):
    """The positions in the coarse half of a table."""
    return (shape["context_window_size"] + 2 * ANGLES - 1) // ANGLES


def table(shape, local=False):
    """cos and sin of position * frequency / factor, in two parts so that the table stays small: every ANGLES-th position, then
    the positions below ANGLES. Their product is as exact as float32 allows, whatever the adapter's own sine is worth. Values that
    are not rotated have an angle of 0 everywhere."""
    turned, rest = half(shape), (shape["head_dim"] - 2 * half(shape)) // 2
    positions = np.concatenate([np.arange(coarse(shape)) * ANGLES, np.arange(ANGLES)]).astype("float64")
    theta = shape["rope_local_theta"] if local and shape["rope_local_theta"] else shape["rope_theta"]
    frequency = theta ** (-np.arange(turned, dtype="float64") / turned)
    if shape["rope_factors"] and not (local and shape["rope_local_theta"]):
        frequency = frequency / np.array(shape["rope_factors"])
    angle = np.outer(positions, np.concatenate([frequency, np.zeros(rest)]))
    both = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    both[:coarse(shape), :, :turned] *= shape["rope_attention_factor"] or 1
    return both.astype("float32")


def half(shape):
    """The pairs of a head's values that are rotated."""
    return (shape["rotary_dim"] or shape["head_dim"]) // 2


class Rotation:
    """The rotation in a kernel."""

    def __init__(self, k, shape):
        self._turned, self._half, self._coarse = half(shape), shape["head_dim"] // 2, coarse(shape)
        self._table = k.tensor("table", (self._coarse + ANGLES, 2, self._half))
        self._k = k

    def pair(self, i):
        """The places of the pair numbered i, of half as many as a head has values."""
        if self._turned == self._half:
            return i, i + self._half
        kept = i >= self._turned
        return T.Select(kept, i + self._turned, i), T.Select(kept, i + self._half, i + self._turned)

    def angle(self, position, i):
        """The variables that hold the pair's cosine and sine at a position."""
        major, minor, table = position // ANGLES, self._coarse + position % ANGLES, self._table
        cos, sin = self._k.local(), self._k.local()
        cos.set(table(major, 0, i) * table(minor, 0, i) - table(major, 1, i) * table(minor, 1, i))
        sin.set(table(major, 1, i) * table(minor, 0, i) + table(major, 0, i) * table(minor, 1, i))
        return cos, sin


def turn(low, high, cos, sin):
    return low * cos.get() - high * sin.get(), high * cos.get() + low * sin.get()
