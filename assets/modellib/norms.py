"""Kernels of the norms that no product includes."""

from tvm.tirx import all as all_of

import linear_gpu
from rotation import Rotation, turn
from schedule import T, kernel, lanes_of, when
from shape import cache_dtype

ACROSS = 32  # threads of a head on a GPU
LONGEST = 256  # of a row


def root(squares, width, eps):
    """What a row is multiplied by, given the sum of its squares."""
    return T.rsqrt(squares / T.float32(width) + T.float32(eps))


class Band:
    """Heads that are treated alike: where they come from and where they begin in the output."""

    def __init__(self, source, begin, first, count, gain, rotated):
        self.source, self.gain, self.rotated = source, gain, rotated
        self._begin, self._first, self._count = begin, first, count

    def has(self, head):
        return all_of(head >= self._first, head < self._first + self._count)

    def read(self, t, head, i, lanes=1):
        return self.source(0, t, (head - self._first + self._begin[0]) * self._begin[1] + i, lanes=lanes)


def heads(kernels, name, shape, single):
    """Queries and keys, normalised where the model does so and rotated, and values, in one tensor. They come from one tensor, or
    from three."""
    count, kv_heads, width = shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"]
    total, dtype = count + 2 * kv_heads, shape["dtype"]
    sizes, firsts = (count, kv_heads, kv_heads), (0, count, count + kv_heads)

    def body(k):
        n = k.size("n")
        if single:
            sources = [k.tensor("fused", (1, n, total * width), dtype)] * 3
        else:
            sources = [k.tensor(part, (1, n, size * width), dtype) for part, size in zip(("q", "key", "value"), sizes)]
        gains = [k.tensor(f"{part}_gain", (width,), dtype) for part in ("q", "key")] if shape["qk_norm"] else [None] * 2
        positions = k.tensor("positions", (n,), "int32", offset=True)
        rotation = Rotation(k, shape)
        out = k.tensor("out", (1, n, total, width), cache_dtype(shape))
        bands = [Band(source, (first if single else 0, width), first, size, gain, gain is not None or first < count + kv_heads)
                 for source, first, size, gain in zip(sources, firsts, sizes, [*gains, None])]
        row = head_on_gpu if kernels == "gpu" else head_of_a_thread
        row(k, shape, bands, (n, total), (positions, rotation, out))

    return kernel(name, body)


def head_of_a_thread(k, shape, bands, sizes, tensors):
    width, lanes = shape["head_dim"], lanes_of(shape["head_dim"])
    (n, total), (positions, rotation, out) = sizes, tensors
    with k.threads(n * total) as (at,):
        t, head = at // total, at % total
        for band in bands:
            with when(band.has(head)):
                scale, square = k.local(), k.local(lanes)
                if band.gain is not None:
                    square.set(0)
                    with T.serial(0, width // lanes) as i:
                        value = band.read(t, head, i * lanes, lanes)
                        square.add(value * value)
                    scale.set(root(square.sum(), width, shape["rms_norm_eps"]))
                with T.serial(0, width // 2) as i:
                    store(band, (t, head, i), scale, positions, rotation, out)


def head_on_gpu(k, shape, bands, sizes, tensors):
    """A workgroup takes a head."""
    width, (n, total), (positions, rotation, out) = shape["head_dim"], sizes, tensors
    with k.groups(ACROSS, total, n) as (thread, head, t):
        square, scale = k.local(), k.local()
        square.set(T.float32(0))
        for band in bands:
            if band.gain is not None:
                with when(band.has(head)), T.serial(0, (width + ACROSS - 1) // ACROSS) as j:
                    with when(j * ACROSS + thread < width):
                        value = band.read(t, head, j * ACROSS + thread)
                        square.add(value * value)
        if shape["qk_norm"]:
            scale.set(root(linear_gpu.join(k, [square.get()], thread, ACROSS)[0], width, shape["rms_norm_eps"]))
        for band in bands:
            with when(band.has(head)), T.serial(0, (width // 2 + ACROSS - 1) // ACROSS) as j:
                with when(j * ACROSS + thread < width // 2):
                    store(band, (t, head, j * ACROSS + thread), scale, positions, rotation, out)


def store(band, at, scale, positions, rotation, out):
    """Writes the pair numbered i of a head."""
    t, head, i = at
    places = rotation.pair(i)
    values = [band.read(t, head, place) for place in places]
    if band.gain is not None:
        values = [value * scale.get() * band.gain(place) for value, place in zip(values, places)]
    if band.rotated:
        values = turn(*values, *rotation.angle(positions(t), i))
    for value, place in zip(values, places):
        out.set(value, 0, t, head, place)


def rows(kernels, name, width, dtype, eps, residual=False):
    """out[t] = x[t] normalised, plus residual[t] if there is one."""

    def body(k):
        n = k.size("n")
        x = k.tensor("x", (1, n, width), dtype)
        gain = k.tensor("gain", (width,), dtype)
        more = k.tensor("residual", (1, n, width), dtype) if residual else None
        out = k.tensor("out", (1, n, width), dtype)
        lanes = lanes_of(width)

        def put(t, i, scale):
            """Writes the vector numbered i."""
            value = x(0, t, i * lanes, lanes=lanes) * (T.broadcast(scale, lanes) if lanes > 1 else scale)
            value = value * gain(i * lanes, lanes=lanes)
            out.set(value + more(0, t, i * lanes, lanes=lanes) if residual else value, 0, t, i * lanes, lanes=lanes)

        if kernels == "gpu":
            row_on_gpu(k, (x, n, width, eps), put)
        else:
            row_of_a_thread(k, (x, n, width, eps), put)

    return kernel(name, body)


def row_of_a_thread(k, row, put):
    x, n, width, eps = row
    lanes = lanes_of(width)
    with k.threads(n) as (t,):
        scale, square = k.local(), k.local(lanes)
        square.set(0)
        with T.serial(0, width // lanes) as i:
            value = x(0, t, i * lanes, lanes=lanes)
            square.add(value * value)
        scale.set(root(square.sum(), width, eps))
        with T.serial(0, width // lanes) as i:
            put(t, i, scale.get())


def row_on_gpu(k, row, put):
    """A workgroup takes a token."""
    x, n, width, eps = row
    lanes = lanes_of(width)
    steps, threads = width // lanes, 1
    while threads < min(steps, LONGEST):
        threads *= 2
    with k.groups(threads, 1, n) as (thread, _, t):
        scale, square = k.local(), k.local(lanes)
        square.set(0)
        with T.serial(0, (steps + threads - 1) // threads) as j:
            with when(j * threads + thread < steps):
                value = x(0, t, (j * threads + thread) * lanes, lanes=lanes)
                square.add(value * value)
        scale.set(root(linear_gpu.join(k, [square.sum()], thread, threads)[0], width, eps))
        with T.serial(0, (steps + threads - 1) // threads) as j:
            with when(j * threads + thread < steps):
                put(t, j * threads + thread, scale.get())
