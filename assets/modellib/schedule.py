"""Helpers that write kernels with their schedule.

Kernel.threads has one independent thread for each output: barriers are expensive on a software adapter, and short kernels compile
in milliseconds. Kernel.groups has workgroups whose threads share memory, so that a GPU reads its memory once.
"""

import contextlib
import itertools

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

THREADS = 64  # threads a workgroup; 16 rows of four lanes on a software adapter
NEIGHBOURS = 4  # threads that every subgroup has; SwiftShader's have no more
MOST_THREADS, MOST_SHARED = 256, 16384  # a workgroup's invocations and bytes that every WebGPU adapter grants


class Kernel:
    """A kernel under construction: its arguments, its thread grid, its local variables."""

    def __init__(self, builder):
        self._builder = builder
        self._names = itertools.count()

    def size(self, name):
        """A size that is known only when the kernel is called."""
        return tirx.Var(name, "int64")

    def tensor(self, name, shape, dtype="float32", offset=False):
        """A tensor argument; offset allows a view that begins inside its buffer. One of float16 is read and written as if it were
        of float32: whatever is computed is computed in that."""
        elem_offset = tirx.Var(f"{name}_offset", "int32") if offset else None
        buffer = T.match_buffer(T.arg(name, T.handle()), shape, dtype, elem_offset=elem_offset)
        return Named(self._builder, name, buffer)

    def scalar(self, name, dtype):
        return T.arg(name, getattr(T, dtype)())

    def local(self, lanes=1, dtype="float32"):
        """A variable of the thread's own; vectors stay in registers."""
        return self.locals(1, lanes, dtype)[0]

    def locals(self, count, lanes=1, dtype="float32"):
        """Variables of the thread's own that a loop can step through."""
        buffer = T.sblock_alloc_buffer((count * lanes,), dtype, scope="local")
        return Locals(self._builder.name(f"local{next(self._names)}", buffer), lanes)

    def gathered(self, variables):
        """The variables' numbers, as variables that a loop can step through."""
        found = self.locals(len(variables))
        for i, variable in enumerate(variables):
            found[i].set(variable.get())
        return found

    def keep(self, value, lanes=1, dtype="float32"):
        """A value, computed once, in a variable of its own."""
        variable = self.local(lanes, dtype)
        variable.set(value)
        return variable.get()

    def number(self, value):
        """A whole number, computed once."""
        return value if isinstance(value, int) else self.keep(value.astype("int32"), dtype="int32")

    @contextlib.contextmanager
    def threads(self, width, *rows, all_act=False):
        """A thread for each of width outputs in each of up to one further dimension of rows; yields their indices. Threads beyond the
        width, which fill the last workgroup, do nothing unless all act.

        The row is the workgroup's y. A third dimension would need blockIdx.z, which the page's runtime keeps for itself."""
        assert len(rows) <= 1
        with contextlib.ExitStack() as stack:
            row = [stack.enter_context(T.thread_binding(r, thread="blockIdx.y")) for r in rows]
            block = stack.enter_context(T.thread_binding((width + THREADS - 1) // THREADS, thread="blockIdx.x"))
            thread = stack.enter_context(T.thread_binding(THREADS, thread="threadIdx.x"))
            stack.enter_context(T.sblock("output"))
            at = block * THREADS + thread
            if not all_act and (not isinstance(width, int) or width % THREADS):
                stack.enter_context(when(at < width))
            yield (at, *row)

    @contextlib.contextmanager
    def groups(self, threads, blocks, *rows):
        """A workgroup of threads for each block of each row; yields the thread's index in it, the block's, and the row's."""
        assert len(rows) <= 1 and threads <= MOST_THREADS
        with contextlib.ExitStack() as stack:
            row = [stack.enter_context(T.thread_binding(r, thread="blockIdx.y")) for r in rows]
            block = stack.enter_context(T.thread_binding(blocks, thread="blockIdx.x"))
            thread = stack.enter_context(T.thread_binding(threads, thread="threadIdx.x"))
            stack.enter_context(T.sblock("output"))
            yield (thread, block, *row)

    def shared(self, count, lanes=1):
        """count vectors of float32 that the threads of a workgroup share."""
        buffer = T.sblock_alloc_buffer((count,), vector("float32", lanes), scope="shared")
        return Named(self._builder, f"shared{next(self._names)}", buffer)

    def barrier(self):
        """A barrier for a workgroup's threads; all of them must reach it."""
        T.evaluate(T.tvm_storage_sync("shared"))


def of_neighbour(variable, number):
    """The value of a variable in a subgroup's thread of this number. All threads of the subgroup must ask for it."""
    return across("subgroupBroadcast", variable, number)


def joined(variable):
    """Sums a variable over neighbouring threads, which all get the sum."""
    for distance in (1, 2):
        variable.add(across("subgroupShuffleXor", variable, distance))


def across(function, variable, number):
    value = variable.get()
    return tirx.call_pure_extern(value.ty, function, value, T.uint32(number))


class Named:
    """A buffer that is read by calling it and written by set, at vectors of lanes when asked for."""

    def __init__(self, builder, name, buffer):
        self.buffer = builder.name(name, buffer)

    def __call__(self, *at, lanes=1):
        value = self.buffer[(*at[:-1], span(at[-1], lanes))]
        return value.astype(vector("float32", lanes)) if self.buffer.dtype == "float16" else value

    def set(self, value, *at, lanes=1):
        if self.buffer.dtype == "float16":
            value = value.astype(vector("float16", lanes))
        T.buffer_store(self.buffer, value, [*at[:-1], span(at[-1], lanes)])


class Locals:
    def __init__(self, buffer, lanes):
        self._buffer, self._lanes = buffer, lanes

    def __getitem__(self, i):
        return Local(self._buffer, i * self._lanes, self._lanes)


class Local:
    def __init__(self, buffer, at, lanes):
        self._buffer, self._at, self.lanes = buffer, at, lanes

    def get(self):
        return self._buffer[span(self._at, self.lanes)]

    def set(self, value):
        if self.lanes > 1 and not isinstance(value, tirx.Expr):
            value = T.broadcast(T.float32(value), self.lanes)
        T.buffer_store(self._buffer, value, [span(self._at, self.lanes)])

    def add(self, value):
        self.set(self.get() + value)

    def add_product(self, a, b):
        """Adds the product of two variables; to a single number, that of all their lanes."""
        if self.lanes == a.lanes:
            self.add(a.get() * b.get())
        else:
            self.set(sum((a.lane(i) * b.lane(i) for i in range(a.lanes)), self.get()))

    def lane(self, i):
        return self._buffer[self._at + i]

    def sum(self):
        """The sum over the lanes."""
        total = self.lane(0)
        for i in range(1, self.lanes):
            total = total + self.lane(i)
        return total


def span(at, lanes):
    return at if lanes == 1 else T.ramp(at, 1, lanes)


def vector(dtype, lanes):
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def lanes_of(size):
    """The widest vector, up to four, that divides size."""
    return 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1


def tanh(value):
    """The hyperbolic tangent, which in float32 is 1 beyond 10. Adapters' own may overflow, and so does exp."""
    return T.float32(1) - T.float32(2) / (T.exp(T.float32(2) * T.min(value, T.float32(10))) + T.float32(1))


def capped(value, cap):
    """A value softly limited to ±cap."""
    return T.float32(cap) * tanh(value / T.float32(cap))


@contextlib.contextmanager
def when(condition):
    with T.If(condition), T.Then():
        yield


def kernel(name, body):
    """The kernel called name; body gets a Kernel and describes it."""
    with IRBuilder() as builder:
        with T.prim_func(s_tir=True):
            T.func_name(name)
            T.func_attr({"global_symbol": name, "tirx.is_scheduled": True, "tirx.noalias": True})
            body(Kernel(builder))
    return builder.get()
