// Rows of tables that a trainer pushes, before they become messages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ps/message.h"
#include "train/unique_ids.h"

namespace fleet::ps {

// Of one table, on one server; no id is there twice.
struct RowPart {
  std::vector<uint64_t> ids = {};
  std::vector<float> shows = {}, clicks = {};  // by id
  std::vector<float> values = {};  // [ids, dim]: gradients, in geo differences of values
};
using RowPush = std::vector<std::vector<RowPart>>;  // by server, then by table

// Adds all values, shows and clicks by id. New ids follow in the order of their occurrence. Both
// have the same servers and tables.
void add_rows(const RowPush& more, RowPush* sum);

// The push of a part; table: its number in messages, from 1.
Message push_message(RowPart part, uint16_t table, uint64_t sequence, int64_t step);

// The clicks of the samples that each id of a batch occurs in, by the id's number. label: float32,
// one number per sample; zeros without it.
std::vector<float> clicks_of(const BatchIds& ids, std::span<const std::byte> label);

}  // namespace fleet::ps
