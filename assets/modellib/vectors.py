"""Declares as arrays of vectors what a kernel reads and writes in vectors.

TVM's WebGPU generator declares every buffer as an array of scalars and spells a vector access as four scalar ones, each with a
bounds check of its own. The pass here runs on the kernels' device halves, where a buffer is a pointer and its accesses are plain
to see: a buffer that is only ever accessed in aligned vectors of four becomes an array of such vectors.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import PointerType, PrimType, TensorLoad
from tvm.ir.prim import Ramp

LANES = 4
DTYPES = ("float32", "float16", "uint32")
NAME = "llmparity_vectors"  # of the lowering, among TVM's own


def register():
    """Registers the default lowering with this pass as NAME.

    TVM's rewrite of storage is omitted, because it reuses workgroup memory for values of other types. Its other task, declaring a
    thread's variables as vectors, is done here.
    """
    lower, host, device = tirx.get_tir_pipeline("default")

    @tvm.transform.module_pass(opt_level=0)
    def lower_as_stored(module, context):
        with tvm.transform.PassContext(config={**context.config, "tirx.disable_storage_rewrite": True}):
            return lower(module)

    @tvm.transform.module_pass(opt_level=0)
    def widen_all(module, _context):
        for name, func in module.functions_items():
            module[name] = widen(func)
        return module

    passes = lambda: tvm.transform.Sequential([tirx.transform.PointerValueTypeRewrite(), widen_all, device()])
    tirx.register_tir_pipeline(NAME, lambda: (lower_as_stored, host, passes))


def widen(func):
    """func with its buffers declared as vectors where every access allows it."""
    buffers, narrow = {}, []
    params = {p: None for p in func.params}

    def note(node):
        if isinstance(node, tirx.DeclBuffer) and node.data in params and node.buffer.ty.dtype in DTYPES:
            buffers[node.buffer] = node.data
        elif isinstance(node, TensorLoad | tirx.BufferStore) and not aligned(node.indices):
            narrow.append(target_of(node))

    tvm_ffi.structural_walk(func.body, (tvm_ffi.Object, note))
    for buffer in narrow:
        buffers.pop(buffer, None)
    pointers = {p: tirx.Var(p.name, PointerType(PrimType(f"{b.dtype}x{LANES}"), "global")) for b, p in buffers.items()}
    vectors = {b: tirx.decl_buffer((b.shape[0] // LANES,), f"{b.dtype}x{LANES}", b.name) for b in buffers}

    def replace(node):
        if isinstance(node, tirx.DeclBuffer) and node.buffer in vectors:
            return tirx.DeclBuffer(vectors[node.buffer], data=pointers[node.data])
        if isinstance(node, TensorLoad) and node.source in vectors:
            return vectors[node.source][part(node.indices)]
        if isinstance(node, tirx.BufferStore) and node.buffer in vectors:
            return tirx.BufferStore(vectors[node.buffer], node.value, [part(node.indices)])
        return node

    body = tvm_ffi.structural_map(
        func.body, ((tirx.DeclBuffer, replace), (TensorLoad, replace), (tirx.BufferStore, replace)), order="pre")
    return tirx.PrimFunc([pointers.get(p, p) for p in func.params], body, func.ret_type, attrs=func.attrs)


def target_of(node):
    return node.source if isinstance(node, TensorLoad) else node.buffer


def aligned(indices):
    """Whether the access is one vector that begins at a multiple of its length."""
    if len(indices) != 1 or not isinstance(indices[0], Ramp) or indices[0].lanes != LANES:
        return False
    rest = tvm.sym.Analyzer().simplify(tirx.floormod(indices[0].base, LANES))
    return isinstance(rest, tirx.IntImm) and rest.value == 0


def part(indices):
    return tvm.sym.Analyzer().simplify(tirx.floordiv(indices[0].base, LANES))
