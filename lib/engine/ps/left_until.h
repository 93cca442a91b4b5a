// The rest of a time that several waits share.
#pragma once

#include <algorithm>
#include <chrono>

namespace fleet::ps {

inline std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace fleet::ps
