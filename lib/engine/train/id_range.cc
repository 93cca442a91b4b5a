#include "train/id_range.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/embedding.h"
#include "strategy/served_tables.h"

namespace fleet {
namespace {

constexpr char kIdsKey[] = "data.ids";
constexpr int kWeight = 1;  // an input of a lookup

[[noreturn]] void refuse_ids(int64_t ids, const std::string& table, int64_t rows) {
  const std::string given = ids == 0 ? "ids have all 63 bits of a hash (0)"
                                     : "the data have " + std::to_string(ids) + " ids";
  throw Error(
      ErrorCode::kUsage,
      given + ", the table '" + table + "' has " + std::to_string(rows) + " rows (model.ids)",
      kIdsKey,
      "set it to " + std::to_string(rows) +
          " at most, raise model.ids, or put the table on parameter servers (the section "
          "tables)");
}

}  // namespace

void check_id_range(const Job& job, const Program& program) {
  if (!job.data.has("ids") || !job.model.has("ids")) return;
  const int64_t ids = job.data.integer("ids");
  std::vector<VarId> served;
  for (const ServedTable& table : served_tables(program)) served.push_back(table.rows);
  for (const Op& op : program.ops()) {
    if (!op.attributes.has(kTable)) continue;
    const VarId weight = op.inputs[kWeight];
    if (std::ranges::find(served, weight) != served.end()) continue;
    const int64_t rows = program.var(weight).shape[0];
    if (ids == 0 || ids > rows) refuse_ids(ids, op.attributes.text(kTable), rows);
  }
}

}  // namespace fleet
