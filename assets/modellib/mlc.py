"""The graph as MLC's compiler builds it, scheduled by TVM's own rules: what WebLLM's users run where MLC has a library.

Rotation, cache and attention are TVM's too, with their faults: see docs/findings/merge-state.md. Only sampling is ours.
"""

import tvm
import tvm_ffi
from tvm import relax, te, tirx
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.s_tir import dlight
from tvm.s_tir.stmt import SBlock, SBlockRealize

import shape as shapes
from decoder import Decoder

# TVM fills in 256 threads, 32 KiB, warps of 1, and no subgroups.
TARGET = {"kind": "webgpu", "host": {"kind": "llvm", "mtriple": "wasm32-unknown-unknown-wasm"}}
FEW = ((2, 2), (8, 4))  # up to so many tokens: the bucket of the schedule for few
FUSABLE = {"op_pattern": 4}  # what follows element by element joins the kernel


def value(tensors, dtype):
    """A function that gives a value of a matrix: plain, or in groups of 32 that share a scale."""
    if len(tensors) == 1:
        return lambda row, at: tensors[0](row, at)
    words, scales = tensors

    def dequantised(row, at):
        bits = words(row, at // 8) >> (at % 8 * 4).astype("uint32") & tirx.const(15, "uint32")
        return (bits.astype(dtype) - tirx.const(7, dtype)) * scales(row, at // 32)

    return dequantised


def product(x, matrix, bias=None):
    """x times the transpose of a matrix, as one computation, so that no transposed copy is ever made."""
    dtype, width = x.dtype, x.shape[-1]

    def compute(a, *tensors):
        rows, read = tensors[0].shape[0], value(tensors, dtype)
        k = te.reduce_axis((0, width), name="k")
        if len(tensors) > 1:
            read = te.compute((rows, width), read, name="dequantize")
        return te.compute(
            (*a.shape[:-1], rows), lambda *at: te.sum(a(*at[:-1], k).astype(dtype) * read(at[-1], k).astype(dtype), axis=k),
            name="NT_matmul")

    out = op.tensor_expr_op(compute, "NT_matmul", [x, *matrix.tensors], attrs=FUSABLE)
    return out if bias is None else out + bias


class Mlc(Decoder):
    # Open, as in MLC's libraries: it decides which kernels the logits get.
    vocabulary = "vocab_size"

    def embed(self, input_ids):
        table, dtype, scale = self.parts.embedding, self.shape["dtype"], self.shape["embedding_scale"]

        def compute(ids, *tensors):
            read = value(tensors, dtype)
            return te.compute((ids.shape[0], self.shape["hidden_size"]), lambda t, i: read(ids(t), i), name="take")

        rows = op.tensor_expr_op(compute, "take", [input_ids, *table.tensors])
        return rows * scale if scale else rows

    def _forward(self, x, cache, tokens, every=False):
        s, count = self.shape, x.shape[1]
        heads, kv_heads, width = s["num_attention_heads"], s["num_key_value_heads"], s["head_dim"]
        for i, layer in enumerate(self.parts.layers):
            fused = self._heads(layer, self._norm(x, layer.first_gain), (1, count, heads + 2 * kv_heads, width))
            mixed = op.reshape(cache.attention_with_fused_qkv(i, fused, heads, self._score_scale(i)), (1, count, heads * width))
            x = self._norm(product(mixed, layer.out), layer.post_gains[0]) + x
            gate, up = op.split(product(self._norm(x, layer.second_gain), layer.gate_up), 2, axis=-1)
            gate = op.gelu(gate, approximate="tanh") if s["gelu"] else op.silu(gate)
            x = self._norm(product(gate * up, layer.down), layer.post_gains[1]) + x
        x = self._norm(x, self.parts.gain)
        if not tokens and not every:
            x = op.tensor_expr_op(
                lambda a: te.compute((1, 1, a.shape[2]), lambda i, _, k: a[i, a.shape[1] - 1, k], name="index"), "index", [x])
        logits = product(x, self.parts.head)
        if s["final_logit_softcapping"]:
            logits = op.tanh(logits / s["final_logit_softcapping"]) * s["final_logit_softcapping"]
        return (logits if logits.dtype == "float32" else logits.astype("float32")), cache

    def _norm(self, x, gain):
        return x if gain is None else op.rms_norm(x, gain, axes=[-1], epsilon=self.shape["rms_norm_eps"])

    def _heads(self, layer, x, shape):
        """Queries, keys and values in one tensor, the first two normalised where the model does so."""
        fused = [product(x, *weights) for weights in layer.queries]
        fused = op.reshape(fused[0] if len(fused) == 1 else op.concat(fused, dim=-1), shape)
        if not self.shape["qk_norm"]:
            return fused
        heads, kv_heads = self.shape["num_attention_heads"], self.shape["num_key_value_heads"]
        q, k, v = op.split(fused, [heads, heads + kv_heads], axis=2)
        return op.concat([self._norm(q, layer.head_gains[0]), self._norm(k, layer.head_gains[1]), v], dim=2)

    def create_tir_paged_kv_cache(self, max_num_sequence, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window):
        s = self.shape
        scale, scaling = shapes.scaling(s)
        return kv_cache.TIRPagedKVCache(
            attn_kind="mha", max_batch_size=max_num_sequence, max_total_seq_len=max_total_seq_len,
            prefill_chunk_size=prefill_chunk_size, page_size=page_size, support_sliding_window=support_sliding_window,
            layer_partition=relax.ShapeExpr([0, s["num_hidden_layers"]]), num_hidden_layers=s["num_hidden_layers"],
            num_attention_heads=s["num_attention_heads"], num_key_value_heads=s["num_key_value_heads"], qk_head_dim=s["head_dim"],
            v_head_dim=s["head_dim"], mla_original_qk_head_dim=0, mla_original_v_head_dim=0, rope_mode=kv_cache.RopeMode.NORMAL,
            rope_scale=scale, rope_theta=s["rope_theta"], rope_scaling=scaling, rope_ext_factors=relax.prim_value(0),
            rotary_dim=s["rotary_dim"] or s["head_dim"], enable_disaggregation=False, dtype=s["dtype"],
            target=tvm.target.Target(TARGET))


def schedule(module):
    """From operators to scheduled kernels."""
    gpu = dlight.gpu
    return tvm.transform.Sequential([
        tirx.transform.BindTarget(tvm.target.Target(TARGET)),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.DeadCodeElimination(),
        split_by_tokens,
        dlight.ApplyDefaultSchedule(gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback()),
        tirx.transform.ForceNarrowIndexToInt32(),
    ])(module)


@tvm.transform.module_pass(opt_level=0)
def split_by_tokens(module, _context):
    """Products of any number of tokens get three kernels, of which the host calls one by that number."""
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            if func.attrs and "op_pattern" in func.attrs:
                func = func.without_attr("op_pattern")
            module[name] = for_few(func) or func
    return module


def for_few(func):
    def by(rule):
        return dlight.ApplyDefaultSchedule(rule)(tvm.IRModule({"main": func}))["main"]

    sizes = {size for p in func.params if hasattr(p, "shape") for size in p.shape if isinstance(size, tirx.Var)}
    narrow = [(most, by(dlight.gpu.LowBatchGEMV(bucket))) for most, bucket in FEW]
    if len(sizes) != 1 or any(tvm_ffi.structural_equal(f, func) for _, f in narrow):
        return None
    count, body = sizes.pop(), by(dlight.gpu.Matmul()).body
    for most, f in reversed(narrow):
        body = tirx.IfThenElse(tirx.op.tvm_thread_invariant(count <= most), f.body, body)
    func = func.with_body(SBlockRealize([], True, SBlock([], [], [], "root", body)))
    return func.with_attr("tirx.is_scheduled", True).with_attr("tirx.HoistIfThenElseExprWithBlock", True)
