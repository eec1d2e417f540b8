// Streams over bytes in memory.
#ifndef TVM_SUPPORT_BYTES_IO_H_
#define TVM_SUPPORT_BYTES_IO_H_

#include <tvm/ffi/string.h>
#include <tvm/support/io.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tvm {
namespace support {

// Reads bytes that the caller keeps alive.
class BytesInStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;
  explicit BytesInStream(const std::string& bytes) : at_(bytes.data()), left_(bytes.size()) {}
  explicit BytesInStream(const ffi::Bytes& bytes) : at_(bytes.data()), left_(bytes.size()) {}

  size_t Read(void* to, size_t size) override {
    size = std::min(size, left_);
    if (size != 0) std::memcpy(to, at_, size);
    at_ += size;
    left_ -= size;
    return size;
  }
  size_t Write(const void*, size_t) override { return 0; }

 private:
  const char* at_;
  size_t left_;
};

// Appends to a string that the caller owns.
class BytesOutStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;
  explicit BytesOutStream(std::string* to) : to_(to) {}

  size_t Read(void*, size_t) override { return 0; }
  size_t Write(const void* from, size_t size) override {
    to_->append(static_cast<const char*>(from), size);
    return size;
  }

 private:
  std::string* to_;
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_BYTES_IO_H_
