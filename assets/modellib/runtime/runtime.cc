// The runtime of a model library as one translation unit: the parts of TVM that a page needs to run a compiled language model, and
// the few functions that the page's side of the runtime looks up by name. RPC, threads, file systems and tests are left out.
//
// C++ exceptions are off: an error is printed and ends the module, which the page sees as a WebAssembly trap.

#define TVM_LOG_DEBUG 0
#define TVM_LOG_CUSTOMIZE 1
#define TVM_FFI_USE_LIBBACKTRACE 0
#define TVM_FFI_ALWAYS_LOG_BEFORE_THROW 1

#include <tvm/ffi/any.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/logging.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

// The foreign function interface: values, functions, modules.
#include "3rdparty/tvm-ffi/src/ffi/backtrace.cc"
#include "3rdparty/tvm-ffi/src/ffi/container.cc"
#include "3rdparty/tvm-ffi/src/ffi/custom_allocator.cc"
#include "3rdparty/tvm-ffi/src/ffi/dtype.cc"
#include "3rdparty/tvm-ffi/src/ffi/error.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/env_c_api.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/env_context.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/json_parser.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/json_writer.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/library_module.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/library_module_system_lib.cc"
#include "3rdparty/tvm-ffi/src/ffi/extra/module.cc"
#include "3rdparty/tvm-ffi/src/ffi/function.cc"
#include "3rdparty/tvm-ffi/src/ffi/init_once.cc"
#include "3rdparty/tvm-ffi/src/ffi/object.cc"
#include "3rdparty/tvm-ffi/src/ffi/tensor.cc"

// Devices and tensors.
#include "src/runtime/cpu_device_api.cc"
#include "src/runtime/device_api.cc"
#include "src/runtime/extra/contrib/sort/sort.cc"
#include "src/runtime/file_utils.cc"
#include "src/runtime/logging.cc"
#include "src/runtime/memory/memory_manager.cc"
#include "src/runtime/tensor.cc"
#include "src/runtime/timer.cc"
#include "src/runtime/workspace_pool.cc"
#include "web/emcc/webgpu_runtime.cc"

// The virtual machine and the KV cache.
#include "src/runtime/vm/attn_backend.cc"
#include "src/runtime/vm/builtin.cc"
#include "src/runtime/vm/bytecode.cc"
#include "src/runtime/vm/executable.cc"
#include "src/runtime/vm/kv_state.cc"
#include "src/runtime/vm/lm_support.cc"
#include "src/runtime/vm/paged_kv_cache.cc"
#include "src/runtime/vm/rnn_state.cc"
#include "src/runtime/vm/tensor_cache_support.cc"
#include "src/runtime/vm/vm.cc"

// What the page supplies when it instantiates the module.
extern "C" {
int TVMFFIWasmSafeCall(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
void TVMFFIWasmFunctionDeleter(void* self);
}

// What the page calls beyond the foreign function interface.
extern "C" {

TVM_DLL void* TVMWasmAllocSpace(int size) { return std::malloc(static_cast<size_t>(size) + 8); }

TVM_DLL void TVMWasmFreeSpace(void* space) { std::free(space); }

TVM_DLL int TVMFFIWasmFunctionCreate(void* self, TVMFFIObjectHandle* out) {
  return TVMFFIFunctionCreate(self, TVMFFIWasmSafeCall, TVMFFIWasmFunctionDeleter, out);
}

TVM_DLL const char* TVMFFIWasmGetLastError() {
  static std::string text;
  text = tvm::ffi::details::MoveFromSafeCallRaised().what();
  return text.c_str();
}

// One thread: a parallel loop is a loop.
int TVMBackendParallelLaunch(FTVMParallelLambda body, void* data, int) {
  TVMParallelGroupEnv env;
  env.num_task = 1;
  return body(0, &env, data);
}

int TVMBackendParallelBarrier(int, TVMParallelGroupEnv*) { return 0; }

}  // extern "C"

namespace tvm {
namespace runtime {

namespace detail {

[[noreturn]] void LogFatalImpl(const std::string& file, int line, const std::string& message) {
  std::cerr << file << ":" << line << ": " << message << std::endl;
  std::abort();
}

void LogMessageImpl(const std::string& file, int line, int, const std::string& message) {
  std::cout << file << ":" << line << ": " << message << std::endl;
}

}  // namespace detail

// Fills a host tensor from a shard's bytes. bfloat16 that stands for float32 is widened; everything else is copied.
static void DecodeStorage(Tensor tensor, const TVMFFIByteArray* bytes, const ffi::String& format, const ffi::String& dtype) {
  if (format != "f32-to-bf16" || dtype != "float32") {
    tensor.CopyFromBytes(bytes->data, bytes->size);
    return;
  }
  TVM_FFI_ICHECK_EQ(ffi::GetDataSize(*tensor.operator->()), 2 * bytes->size) << "a bfloat16 record of the wrong size";
  char* to = static_cast<char*>(tensor->data) + tensor->byte_offset;
  std::memset(to, 0, 2 * bytes->size);
  for (size_t i = 0; i < bytes->size; i += 2) std::memcpy(to + 2 * i + 2, bytes->data + i, 2);
}

// One tensor [tokens, hidden] out of several, in their order, on their device.
static Tensor ConcatEmbeddings(const std::vector<Tensor>& parts) {
  TVM_FFI_ICHECK(!parts.empty()) << "no embeddings to join";
  int64_t tokens = 0;
  for (const Tensor& part : parts) {
    TVM_FFI_ICHECK(part->ndim == 2 && part->shape[1] == parts[0]->shape[1]) << "embeddings of different widths";
    tokens += part->shape[0];
  }
  Tensor joined = Tensor::Empty({tokens, parts[0]->shape[1]}, parts[0]->dtype, parts[0]->device);
  uint64_t offset = 0;
  for (const Tensor& part : parts) {
    DLTensor slot = *joined.operator->();
    slot.shape = part->shape;
    slot.byte_offset = offset;
    Tensor::CopyFromTo(part.operator->(), &slot);
    offset += ffi::GetDataSize(*part.operator->());
  }
  return joined;
}

// Stands for the kernels of the KV cache that the compiler leaves out.
static void KernelLeftOut(ffi::PackedArgs, ffi::Any*) {
  TVM_FFI_THROW(NotImplementedError) << "this model library was compiled without page copies, cache compaction and cache read-back";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def_packed("llmparity.kernel_left_out", KernelLeftOut)
      .def_packed("tvmjs.array.decode_storage",
                  [](ffi::PackedArgs args, ffi::Any*) {
                    DecodeStorage(args[0].cast<Tensor>(), args[1].cast<TVMFFIByteArray*>(), args[2].cast<ffi::String>(),
                                  args[3].cast<ffi::String>());
                  })
      .def_packed("tvmjs.runtime.ArrayConcat",
                  [](ffi::PackedArgs args, ffi::Any* joined) {
                    ffi::Array<ffi::Any> all;
                    for (int i = 0; i < args.size(); ++i) {
                      for (const ffi::Any& item : args[i].cast<ffi::Array<ffi::Any>>()) all.push_back(item);
                    }
                    *joined = all;
                  })
      .def_packed("tvmjs.runtime.ConcatEmbeddings",
                  [](ffi::PackedArgs args, ffi::Any* joined) {
                    std::vector<Tensor> parts;
                    for (int i = 0; i < args.size(); ++i) parts.push_back(args[i].cast<Tensor>());
                    *joined = ConcatEmbeddings(parts);
                  })
      .def("tvmjs.runtime.TensorCopyFromBytes",
           [](Tensor tensor, TVMFFIByteArray* bytes) { tensor.CopyFromBytes(bytes->data, bytes->size); })
      .def("tvmjs.runtime.TensorCopyToBytes", [](Tensor tensor) {
        std::string bytes(ffi::GetDataSize(*tensor.operator->()), '\0');
        tensor.CopyToBytes(&bytes[0], bytes.size());
        return ffi::Bytes(std::move(bytes));
      });
}

}  // namespace runtime
}  // namespace tvm
