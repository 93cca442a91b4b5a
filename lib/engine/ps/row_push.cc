#include "ps/row_push.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ps/table_payload.h"

namespace fleet::ps {

// The sum for one table on one server.
static RowPart sum_of_parts(const std::vector<RowPush>& pushes, size_t server, size_t table) {
  size_t dim = 0, count = 0;
  for (const RowPush& push : pushes) {
    const RowPart& part = push[server][table];
    count += part.ids.size();
    if (!part.ids.empty()) dim = part.values.size() / part.ids.size();
  }
  RowSum sum(dim);
  sum.expect(count);
  for (const RowPush& push : pushes) sum.add(push[server][table]);
  return sum.take();
}

RowPush sum_of(std::vector<RowPush> pushes) {
  FLEET_CHECK(!pushes.empty(), "a sum of no rows");
  for (const RowPush& more : pushes) {
    const bool same = std::ranges::equal(
        more, pushes[0], [](const auto& a, const auto& b) { return a.size() == b.size(); });
    FLEET_CHECK(same, "a sum of rows of different servers or tables");
  }
  if (pushes.size() == 1) return std::move(pushes[0]);
  RowPush sum(pushes[0].size());
  for (size_t server = 0; server < sum.size(); ++server) {
    for (size_t table = 0; table < pushes[0][server].size(); ++table) {
      sum[server].push_back(sum_of_parts(pushes, server, table));
    }
  }
  return sum;
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
