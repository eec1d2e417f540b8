"""Prints the shader of TVM's _merge_state_inplace, and checks that nothing orders its reads and writes of S.

Needs apache-tvm 0.27.0.post1 and no GPU. A barrier between the last read of S and its write mends it:

    T.tvm_storage_sync("shared")
    S[bx, ty + by * bdy] = T.log2(s_val[0] + s_other_val[0]) + s_max[0]
"""

import tvm
from tvm.relax.frontend.nn.llm.kv_cache import _merge_state_inplace

target = tvm.target.Target({"kind": "webgpu", "host": {"kind": "llvm", "mtriple": "wasm32-unknown-unknown-wasm"}})
kernel = _merge_state_inplace(4, 64, "float32", target, "merge_state")
built = tvm.compile(tvm.IRModule({"merge_state": kernel}), target)
shader = built.mod.imports[0].inspect_source()
print(shader)
print("barriers:", shader.count("workgroupBarrier"))
