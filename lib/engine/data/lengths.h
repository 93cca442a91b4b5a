// Batches by length (data.lengths): rows of tokens of a few lengths. A global batch has the
// smallest length that its longest sample fits into, so that all ranks run the same Plan in a step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/config.h"
#include "data/source.h"
#include "tensor/column.h"

namespace fleet::data {

// data.lengths, ascending; {} for rows of one length. kUsage if the samples have no columns by
// length, or have images too; if the lengths are not ascending, are too many, or do not end with
// the length of the columns.
std::vector<int64_t> batch_lengths(const Settings& data, const std::vector<Column>& columns);

// By sample: the index of the smallest length that it fits into. kUsage naming a sample that is
// longer than all.
std::shared_ptr<const std::vector<uint8_t>> length_classes(const Source& source,
                                                           const std::vector<int64_t>& lengths);

}  // namespace fleet::data
