// Base64 over another stream: how a tensor travels inside JSON. It needs Finish after the last write and InitPosition before the
// first read, because those are the calls that the tensor code makes.
#ifndef TVM_SUPPORT_BASE64_H_
#define TVM_SUPPORT_BASE64_H_

#include <tvm/support/io.h>

#include <cstdint>

namespace tvm {
namespace support {

constexpr char kBase64Digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

class Base64OutStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;
  explicit Base64OutStream(Stream* to) : to_(to) {}

  size_t Read(void*, size_t) override { return 0; }
  size_t Write(const void* from, size_t size) override {
    for (size_t i = 0; i < size; ++i) {
      pending_ = pending_ << 8 | static_cast<const uint8_t*>(from)[i];
      if (++count_ == 3) Flush();
    }
    return size;
  }
  void Finish() {
    if (count_ != 0) Flush();
  }

 private:
  // Writes four digits for the one to three pending bytes; '=' stands for a byte that is not there.
  void Flush() {
    pending_ <<= 8 * (3 - count_);
    char digits[4];
    for (int i = 0; i < 4; ++i) digits[i] = i <= count_ ? kBase64Digits[pending_ >> (18 - 6 * i) & 63] : '=';
    to_->Write(static_cast<const void*>(digits), sizeof(digits));
    pending_ = 0;
    count_ = 0;
  }

  Stream* to_;
  uint32_t pending_ = 0;
  int count_ = 0;
};

class Base64InStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;
  explicit Base64InStream(Stream* from) : from_(from) {}

  void InitPosition() { bits_ = 0; }
  size_t Write(const void*, size_t) override { return 0; }
  size_t Read(void* to, size_t size) override {
    for (size_t i = 0; i < size; ++i) {
      while (bits_ < 8) {
        int digit = NextDigit();
        if (digit < 0) return i;
        pending_ = pending_ << 6 | static_cast<uint32_t>(digit);
        bits_ += 6;
      }
      bits_ -= 8;
      static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(pending_ >> bits_);
    }
    return size;
  }

 private:
  // The next digit's value, skipping white space; -1 at the end and at '='.
  int NextDigit() {
    char c;
    while (from_->Read(static_cast<void*>(&c), 1) == 1) {
      if (c >= 'A' && c <= 'Z') return c - 'A';
      if (c >= 'a' && c <= 'z') return c - 'a' + 26;
      if (c >= '0' && c <= '9') return c - '0' + 52;
      if (c == '+') return 62;
      if (c == '/') return 63;
      if (c == '=') return -1;
    }
    return -1;
  }

  Stream* from_;
  uint32_t pending_ = 0;
  int bits_ = 0;
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_BASE64_H_
