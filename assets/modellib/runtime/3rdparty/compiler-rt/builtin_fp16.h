// Widening of a half-precision number, under the name that the runtime's sort calls it by.
#ifndef COMPILER_RT_BUILTIN_FP16_H_
#define COMPILER_RT_BUILTIN_FP16_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// Only half (10 stored significand bits in 16) to float is offered: nothing here asks for another pair.
template <class From, class FromBits, int kFromSig, class To, class ToBits, int kToSig>
inline To __extendXfYf2__(From half) {
  static_assert(std::is_same_v<From, uint16_t> && std::is_same_v<To, float> && kFromSig == 10 && kToSig == 23,
                "only half to float");
  int exponent = half >> 10 & 31;
  int fraction = half & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return half & 0x8000 ? -magnitude : magnitude;
}

#endif  // COMPILER_RT_BUILTIN_FP16_H_
