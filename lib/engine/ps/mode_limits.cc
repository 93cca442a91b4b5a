#include "ps/mode_limits.h"

#include <string>

#include "base/error.h"
#include "strategy/server_mode.h"

namespace fleet::ps {
namespace {

void check_geo_table(const TableSettings& table) {
  const std::string key = "tables." + table.name;
  if (table.storage != "memory") {
    throw Error(ErrorCode::kUnsupported,
                "in mode geo, a trainer holds all rows that it has used, so that no table may be "
                "larger than its memory",
                key + ".storage.kind", "set it to memory, or use the mode async or sync");
  }
  if (table.entry != TableSettings::Entry::kNone) {
    throw Error(ErrorCode::kUnsupported,
                "in mode geo, trainers train a row for each of their ids, and servers do not see "
                "how often an id occurs",
                key + ".entry.kind", "set it to none, or use the mode async or sync");
  }
}

}  // namespace

void check_mode(ServerMode mode, const ServedModel& model, const Placement& placement,
                std::span<const TableSettings> tables) {
  if (mode == ServerMode::kGeo) {
    for (const TableSettings& table : tables) check_geo_table(table);
  }
  if (mode == ServerMode::kAsync && !norm_parts(model, placement).empty()) {
    throw Error(ErrorCode::kUnsupported,
                std::string("parameter servers in mode ") + name_of(mode) +
                    " do not support clipping by the global norm on several servers",
                "optimizer.clip", "use one server, another clip, or set strategy.a_sync to false");
  }
}

}  // namespace fleet::ps
