// How each type of the runtime lies in a stream. Numbers are copied as they lie in memory, which is the file's order on every
// machine that we compile on and for (little endian); containers are a u64 count and their items.
#ifndef TVM_SUPPORT_SERIALIZER_H_
#define TVM_SUPPORT_SERIALIZER_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>
#include <tvm/support/io.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace support {

// A value that is its own bytes.
template <class T>
struct RawSerializer {
  static constexpr bool enabled = true;
  static void Write(Stream* out, const T& value) { out->Write(static_cast<const void*>(&value), sizeof(T)); }
  static bool Read(Stream* in, T* value) { return in->Read(static_cast<void*>(value), sizeof(T)) == sizeof(T); }
};

template <class T, class>
struct Serializer {
  static constexpr bool enabled = false;
};

template <class T>
struct Serializer<T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>> : RawSerializer<T> {};

static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8, "DLPack structs are written as they lie");
template <>
struct Serializer<DLDataType> : RawSerializer<DLDataType> {};
template <>
struct Serializer<DLDevice> : RawSerializer<DLDevice> {};

template <class String>
struct TextSerializer {
  static constexpr bool enabled = true;
  static void Write(Stream* out, const String& text) {
    out->Write(static_cast<uint64_t>(text.size()));
    out->Write(static_cast<const void*>(text.data()), text.size());
  }
  static bool Read(Stream* in, String* text) {
    uint64_t size;
    if (!in->Read(&size)) return false;
    std::string bytes(size, '\0');
    if (in->Read(static_cast<void*>(&bytes[0]), size) != size) return false;
    *text = String(std::move(bytes));
    return true;
  }
};
template <>
struct Serializer<std::string> : TextSerializer<std::string> {};
template <>
struct Serializer<ffi::String> : TextSerializer<ffi::String> {};

template <class List, class Item>
struct ListSerializer {
  static constexpr bool enabled = true;
  static void Write(Stream* out, const List& list) {
    out->Write(static_cast<uint64_t>(list.size()));
    for (const auto& item : list) Serializer<Item>::Write(out, item);
  }
  static bool Read(Stream* in, List* list) {
    uint64_t count;
    if (!in->Read(&count)) return false;
    list->clear();
    for (uint64_t i = 0; i < count; ++i) {
      Item item;
      if (!Serializer<Item>::Read(in, &item)) return false;
      list->push_back(std::move(item));
    }
    return true;
  }
};
template <class T>
struct Serializer<std::vector<T>> : ListSerializer<std::vector<T>, T> {};
template <class T>
struct Serializer<ffi::Array<T>> : ListSerializer<ffi::Array<T>, T> {};

template <class K, class V>
struct Serializer<std::unordered_map<K, V>> {
  static constexpr bool enabled = true;
  static void Write(Stream* out, const std::unordered_map<K, V>& map) {
    out->Write(static_cast<uint64_t>(map.size()));
    for (const auto& entry : map) {
      out->Write(entry.first);
      out->Write(entry.second);
    }
  }
  static bool Read(Stream* in, std::unordered_map<K, V>* map) {
    uint64_t count;
    if (!in->Read(&count)) return false;
    map->clear();
    for (uint64_t i = 0; i < count; ++i) {
      std::pair<K, V> entry;
      if (!in->Read(&entry.first) || !in->Read(&entry.second)) return false;
      map->insert(std::move(entry));
    }
    return true;
  }
};

template <class K, class V>
struct Serializer<ffi::Map<K, V>> {
  static constexpr bool enabled = true;
  static void Write(Stream* out, const ffi::Map<K, V>& map) {
    out->Write(static_cast<uint64_t>(map.size()));
    for (const auto& entry : map) {
      Serializer<K>::Write(out, entry.first);
      Serializer<V>::Write(out, entry.second);
    }
  }
  static bool Read(Stream* in, ffi::Map<K, V>* map) {
    std::unordered_map<K, V> entries;
    if (!Serializer<std::unordered_map<K, V>>::Read(in, &entries)) return false;
    map->clear();
    for (auto& entry : entries) map->Set(entry.first, entry.second);
    return true;
  }
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_SERIALIZER_H_
