#include "node/waits_json.h"

#include "base/json.h"

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

Json waits_json(const google::protobuf::RepeatedPtrField<CollectiveWait>& waits) {
  Json all = Json::array();
  for (const CollectiveWait& wait : waits) {
    const GroupCall& call = wait.call();
    all.push_back({{"kind", name_of(wait.kind())},
                   {"group", wait.group()},
                   {"operation", call.kind()},
                   {"sequence", call.sequence()},
                   {"for", call.purpose()},
                   {"bytes", call.size()},
                   {"missing", numbers(wait.missing())},
                   {"waiting", numbers(wait.waiting())},
                   {"text", wait.line()}});
  }
  return all;
}

}  // namespace fleet
