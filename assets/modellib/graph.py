"""How the model's graph calls kernels."""

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op


def call(func, args, *outputs):
    """Calls a kernel; an output is a shape, float32, or a pair of shape and dtype."""
    outputs = [o if isinstance(o[0], tuple) else (o, "float32") for o in outputs]
    out = [nn.Tensor.placeholder(shape, dtype) for shape, dtype in outputs]
    return op.tensor_ir_op(func, func.attrs["global_symbol"], args, out[0] if len(out) == 1 else out)


def edit(func, args):
    """Calls a kernel that changes its first argument."""
    return op.tensor_ir_inplace_op(
        func, func.attrs["global_symbol"], args, 0, nn.Tensor.placeholder(args[0].shape, args[0].dtype))
