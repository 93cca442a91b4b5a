// Inputs of the ranks and expected results, exact in every type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "comm/communicator.h"

namespace fleet {

inline constexpr DType kTypes[] = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                                   DType::kBFloat16, DType::kInt64,   DType::kInt32,
                                   DType::kUInt8};

// Whole numbers up to 128, which every type holds exactly.
inline void put(DType dtype, void* data, size_t i, int value) {
  switch (dtype) {
    case DType::kFloat32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case DType::kFloat64:
      static_cast<double*>(data)[i] = value;
      return;
    case DType::kInt64:
      static_cast<int64_t*>(data)[i] = value;
      return;
    case DType::kInt32:
      static_cast<int32_t*>(data)[i] = value;
      return;
    case DType::kUInt8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
      return;
    case DType::kBFloat16: {
      const float wide = static_cast<float>(value);
      std::memcpy(static_cast<uint16_t*>(data) + i, reinterpret_cast<const char*>(&wide) + 2, 2);
      return;
    }
    case DType::kFloat16: {
      int exponent = 0;
      while (value >> (exponent + 1)) ++exponent;
      const int fraction = (value << 10 >> exponent) & 1023;
      static_cast<uint16_t*>(data)[i] =
          static_cast<uint16_t>(value ? (exponent + 15) << 10 | fraction : 0);
      return;
    }
  }
}

inline int contribution(int rank, size_t i) { return static_cast<int>((rank * 7 + i) % 11); }

inline int expected_of(ReduceOp op, int size, size_t i) {
  int result = contribution(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const int value = contribution(rank, i);
    if (op == ReduceOp::kSum) result += value;
    if (op == ReduceOp::kMin) result = std::min(result, value);
    if (op == ReduceOp::kMax) result = std::max(result, value);
  }
  return result;
}

}  // namespace fleet
