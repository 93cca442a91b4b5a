#include "node/waits_json.h"

#include <nlohmann/json.hpp>

namespace fleet {
namespace {

const char* name_of(CollectiveWait::Kind kind) {
  switch (kind) {
    case CollectiveWait::MISMATCH:
      return "mismatch";
    case CollectiveWait::TOGETHER:
      return "together";
    case CollectiveWait::CIRCLE:
      return "circle";
    case CollectiveWait::UNKNOWN:
      return "unknown";
    default:
      return "missing";
  }
}

}  // namespace

nlohmann::ordered_json waits_json(const google::protobuf::RepeatedPtrField<CollectiveWait>& waits) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const CollectiveWait& wait : waits) {
    const GroupCall& call = wait.call();
    all.push_back({{"kind", name_of(wait.kind())},
                   {"group", wait.group()},
                   {"operation", call.kind()},
                   {"sequence", call.sequence()},
                   {"for", call.purpose()},
                   {"bytes", call.size()},
                   {"missing", Json(wait.missing())},
                   {"waiting", Json(wait.waiting())},
                   {"text", wait.line()}});
  }
  return all;
}

}  // namespace fleet
