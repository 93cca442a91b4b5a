#include "ps/tables/cold_store.h"

namespace fleet::ps {

Registry<ColdStoreDef>& cold_stores() {
  static Registry<ColdStoreDef> registry("storage");
  return registry;
}

void check_cold_store(const std::string& kind, const std::string& where) {
  if (cold_stores().find(kind) != nullptr) return;
  if (kind == "rocksdb") {
    throw Error(ErrorCode::kUnsupported, "this build has no storage 'rocksdb'", where,
                "install librocksdb-dev and build again, or use 'memory'");
  }
  std::vector<std::string> known = cold_stores().names();
  known.push_back("memory");
  throw Error(ErrorCode::kUsage, "unknown storage '" + kind + "'", where, suggestion(kind, known));
}

}  // namespace fleet::ps
