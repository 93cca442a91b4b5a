#include "ps/row_push.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "ps/table_payload.h"

namespace fleet::ps {
namespace {

void add_part(const RowPart& more, RowPart* sum) {
  if (more.ids.empty()) return;
  const size_t dim = more.values.size() / more.ids.size();
  FLEET_CHECK(sum->ids.empty() || sum->values.size() == dim * sum->ids.size(),
              "a sum of rows of different sizes");
  UniqueIds unique;
  unique.clear(sum->ids.size() + more.ids.size());
  for (const uint64_t id : sum->ids) unique.add(id);
  for (size_t i = 0; i < more.ids.size(); ++i) {
    const size_t row = unique.add(more.ids[i]);
    const float* const values = more.values.data() + i * dim;
    if (row == sum->ids.size()) {
      sum->ids.push_back(more.ids[i]);
      sum->shows.push_back(more.shows[i]);
      sum->clicks.push_back(more.clicks[i]);
      sum->values.insert(sum->values.end(), values, values + dim);
      continue;
    }
    sum->shows[row] += more.shows[i];
    sum->clicks[row] += more.clicks[i];
    float* const to = sum->values.data() + row * dim;
    for (size_t j = 0; j < dim; ++j) to[j] += values[j];
  }
}

}  // namespace

void add_rows(const RowPush& more, RowPush* sum) {
  FLEET_CHECK(more.size() == sum->size(), "a sum of rows for different servers");
  for (size_t s = 0; s < more.size(); ++s) {
    FLEET_CHECK(more[s].size() == (*sum)[s].size(), "a sum of rows of different tables");
    for (size_t t = 0; t < more[s].size(); ++t) add_part(more[s][t], &(*sum)[s][t]);
  }
}

Message push_message(RowPart part, uint16_t table, uint64_t sequence, int64_t step) {
  return {
      .header = {.type = MessageType::kPush,
                 .table = table,
                 .count = static_cast<uint32_t>(part.ids.size()),
                 .sequence = sequence,
                 .version = step},
      .parts = {bytes_of_values(std::move(part.ids)), bytes_of_values(std::move(part.shows)),
                bytes_of_values(std::move(part.clicks)), bytes_of_values(std::move(part.values))}};
}

std::vector<float> clicks_of(const BatchIds& ids, std::span<const std::byte> label) {
  std::vector<float> clicks(ids.ids().size());
  const std::vector<int64_t>& places = ids.places();
  const size_t samples = label.size() / sizeof(float);
  if (samples == 0 || places.size() % samples != 0) return clicks;
  const size_t each = places.size() / samples;
  for (size_t i = 0; i < places.size(); ++i) {
    float click = 0;
    std::memcpy(&click, label.data() + i / each * sizeof click, sizeof click);
    if (places[i] >= 0) clicks[static_cast<size_t>(places[i])] += click;
  }
  return clicks;
}

}  // namespace fleet::ps
