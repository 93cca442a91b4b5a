// Rows of tables that a trainer pushes, before they become messages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ps/message.h"
#include "ps/row_sum.h"
#include "train/unique_ids.h"

namespace fleet::ps {

using RowPush = std::vector<std::vector<RowPart>>;  // by server, then by table

// The sum, from left to right, by id. All have the same servers and tables.
RowPush sum_of(std::vector<RowPush> pushes);

// The push of a part; table: its number in messages, from 1.
Message push_message(RowPart part, uint16_t table, uint64_t sequence, int64_t step);

// The clicks of the samples that each id of a batch occurs in, by the id's number. label: float32,
// one number per sample; zeros without it.
std::vector<float> clicks_of(const BatchIds& ids, std::span<const std::byte> label);

}  // namespace fleet::ps
