"""From a shape to the object files of its library: the model's functions, their kernels as WGSL, and the metadata."""

import json
import math
import os

import tvm
from tvm import relax

import decoder
import mlc
import shape as shapes
import vectors

TARGET = {
    "kind": "webgpu",
    "host": {"kind": "llvm", "mtriple": "wasm32-unknown-unknown-wasm"},
    "max_num_threads": 256,
}
SOFTWARE = {**TARGET, "supports_subgroups": True}  # SwiftShader and lavapipe have them; a GPU's browser may not
LOGITS = 1 << 23  # at most from one call of batch_verify: 32 MiB. assets/page/scoring.js has the same number
UNSTATED = ["batch_verify"]  # functions that no measured request calls


def objects(shape, variant, folder):
    """Compiles the model into object files in folder and returns their names, in the order to link them."""
    kind, target, kernels = (
        (mlc.Mlc, mlc.TARGET, "default") if variant["kernels"] == "mlc" else
        (decoder.Decoder, SOFTWARE if variant["kernels"] == "software" else TARGET, vectors.NAME))
    target, found = tvm.target.Target(target), []
    with target, tvm.transform.PassContext(config={"tirx.disable_cse_tir": True}):
        vectors.register()
        model = kind(shape, variant)
        module, params = model.export_tvm(spec=model.spec())
        built = relax.build(
            bounded(module, shape), target, relax_pipeline=pipeline(shape, variant, params), tir_pipeline=kernels, system_lib=True)
        built.export_library(
            os.path.join(folder, "library.wasm"), workspace_dir=folder, fcompile=lambda _, files, **__: found.extend(files))
    return [os.path.basename(file) for file in found]


def bounded(module, shape):
    """Bounds the length of a prefill chunk, so that every buffer is allocated once at its maximum size."""
    for name, func in module.functions_items():
        if isinstance(func, relax.Function):
            module[name] = func.with_attr("tir_var_upper_bound", bounds(shape))
    return module


def bounds(shape):
    chunk, vocab = shape["prefill_chunk_size"], shape["vocab_size"]
    return {"seq_len": chunk, "verify_len": min(chunk, LOGITS // vocab), "vocab_size": vocab}


def pipeline(shape, variant, params):
    """The lowering of the graph. Every kernel of ours comes scheduled, so there is nothing to legalise, fuse or schedule."""

    @tvm.transform.module_pass(opt_level=0)
    def lower(module, _context):
        if variant["kernels"] == "mlc":
            module = mlc.schedule(module)
        module = tvm.transform.Sequential([
            relax.transform.RewriteDataflowReshape(),
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.StaticPlanBlockMemory(),
            relax.transform.LowerAllocTensor(),
        ])(module)
        module = with_metadata(module, shape, variant, params)
        return tvm.transform.Sequential([
            relax.transform.KillAfterLastUse(),
            relax.transform.LowerRuntimeBuiltin(),
            relax.transform.ComputePrimValue(),
            relax.transform.VMShapeLower(),
            relax.transform.AttachGlobalSymbol(),
        ])(module)

    return lower


def with_metadata(module, shape, variant, params):
    """Adds _metadata: what the library is for and what it needs."""
    text = json.dumps({
        "model_type": shape["model_type"],
        "quantization": shape["quantization"] or {"float32": "q0f32", "float16": "q0f16"}[shape["dtype"]],
        "llmparity": {**variant, "shape": shapes.stated(shape)},  # the only place with rotation and window
        "context_window_size": shape["context_window_size"],
        "sliding_window_size": -1,
        "attention_sink_size": -1,
        "prefill_chunk_size": shape["prefill_chunk_size"],
        "tensor_parallel_shards": 1,
        "kv_state_kind": "kv_cache",
        "kv_cache": {field: shape[field] for field in (
            "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim")},
        "params": [
            {"name": name, "shape": [int(n) if isinstance(n, int | tvm.tirx.IntImm) else n.name for n in p.shape], "dtype": str(p.dtype), "preprocs": []} for name, p in params],
        "memory_usage": {
            name.name_hint: planned_bytes(func, bounds(shape))
            for name, func in module.functions_items()
            if isinstance(func, relax.Function) and name.name_hint not in UNSTATED},
    }, sort_keys=True)
    builder = relax.BlockBuilder(module)
    with builder.function("_metadata", params=[]):
        builder.emit_func_output(tvm.ir.StringImm(text))
    return builder.get()


def planned_bytes(func, bounds):
    """The bytes that a call of a function allots at most, for what it works in and for what it returns. Weights and constants are
    not among them, nor what the KV cache allots by itself."""
    total = 0

    def visit(expr):
        nonlocal total
        if isinstance(expr, relax.Call) and expr.op == tvm.ir.Op.get("relax.memory.alloc_storage"):
            total += math.prod(most(size, bounds) for size in expr.args[0].values)

    relax.analysis.post_order_visit(func, visit)
    return total


def most(size, bounds):
    """The greatest value of a size; a variable without a bound is an error, since it would count nothing."""
    analyzer = tvm.sym.Analyzer()
    for variable in tvm.tirx.analysis.undefined_vars(size):
        analyzer.bind(variable, tvm.ir.Range(1, bounds[variable.name] + 1))
    return analyzer.const_int_bound(size).max_value
