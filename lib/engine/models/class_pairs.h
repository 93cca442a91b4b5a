// A confusion matrix as metrics read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fleet {

// The number of samples by true and predicted class.
struct ClassPairs {
  int64_t classes = 0;
  std::vector<double> counts;  // [true class][predicted class], whole numbers
  double at(int64_t own, int64_t predicted) const {
    return counts[static_cast<size_t>(own * classes + predicted)];
  }
};

}  // namespace fleet
