// Binary streams for the runtime: raw little-endian bytes in, raw bytes out. The wheel's sources include this header but do not
// carry it; this is the least that they call.
#ifndef TVM_SUPPORT_IO_H_
#define TVM_SUPPORT_IO_H_

#include <cstddef>
#include <type_traits>

namespace tvm {
namespace support {

template <class T, class = void>
struct Serializer;

class Stream {
 public:
  virtual ~Stream() = default;
  virtual size_t Read(void* to, size_t size) = 0;
  virtual size_t Write(const void* from, size_t size) = 0;

  template <class T>
  bool Read(T* value) {
    return Serializer<T>::Read(this, value);
  }
  template <class T>
  void Write(const T& value) {
    Serializer<T>::Write(this, value);
  }
  template <class T>
  bool ReadArray(T* items, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!Serializer<T>::Read(this, items + i)) return false;
    }
    return true;
  }
  template <class T>
  void WriteArray(const T* items, size_t count) {
    for (size_t i = 0; i < count; ++i) Serializer<T>::Write(this, items[i]);
  }
};

}  // namespace support
}  // namespace tvm

#include <tvm/support/serializer.h>

#endif  // TVM_SUPPORT_IO_H_
