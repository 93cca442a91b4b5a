// A subset of another source, and the choice of a validation split.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/source.h"

namespace fleet::data {

// The samples of `all` at these indices, in this order.
std::unique_ptr<Source> subset_of(std::unique_ptr<Source> all, std::vector<int64_t> indices);

struct Split {
  std::vector<int64_t> train, validation;  // indices, ascending; together they are all samples
};

// Of each class with n samples, round(n x part) are for validation, but at least one if n > 1, and
// never all. The choice depends only on (seed, index). kUsage if no sample is left for validation.
// 0 < part < 1.
Split split_by_class(const Source& source, double part, uint64_t seed);

}  // namespace fleet::data
