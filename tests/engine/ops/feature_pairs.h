// The dot products of pairs of features, one by one, for tests of interactions.
#pragma once

#include <numeric>
#include <vector>

#include "tests/engine/ops/op_check.h"

namespace fleet {

// x: [samples, features, size]. By sample: the products of features (i, j), j < i, in the order of
// i and then of j.
inline std::vector<Values> products_of_pairs(const Shape& x, const Values& values) {
  std::vector<Values> products;
  for (int64_t n = 0; n < x[0]; ++n) {
    const double* rows = values.data() + n * x[1] * x[2];
    Values& own = products.emplace_back();
    for (int64_t i = 1; i < x[1]; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        own.push_back(
            std::inner_product(rows + i * x[2], rows + (i + 1) * x[2], rows + j * x[2], 0.0));
      }
    }
  }
  return products;
}

}  // namespace fleet
