// Sums of squares in parts, which several processes compute (ops/partial_squares.cc).
#pragma once

#include <cstdint>

namespace fleet {

// Elements of a part. sum_of_squares adds up the same ones on the CPU.
inline constexpr int64_t kSquaresPart = 16384;

inline int64_t parts_of_squares(int64_t elements) {
  return (elements + kSquaresPart - 1) / kSquaresPart;
}

}  // namespace fleet
