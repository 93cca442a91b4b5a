#include "store/connect.h"

#include <utility>

#include "base/env.h"
#include "base/error.h"
#include "store/env.h"

namespace fleet {
namespace {

StoreConnector& installed_connector() {
  static StoreConnector connector;
  return connector;
}

}  // namespace

void set_store_connector(StoreConnector connector) { installed_connector() = std::move(connector); }

std::shared_ptr<Store> job_store() {
  if (!get_env(kEnvStoreAddress)) return nullptr;
  const StoreConnector& connector = installed_connector();
  if (connector) return connector();
  throw Error(ErrorCode::kUnsupported, "this program has no client for the job's store",
              std::string("environment ") + kEnvStoreAddress,
              "link libfleetrun, or call set_store_connector()");
}

}  // namespace fleet
