#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Paddle's scripts for collective training set them too: its setter of a_sync fills a_sync_configs.
FLEET_META_OPTIMIZER(asynchronous) {
  def.help = "how parameter servers are updated: without meaning in collective training";
  def.fields = {"a_sync", "a_sync_configs"};
  def.create = [fields = def.fields](const StrategyProto& proto,
                                     const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    const std::vector<std::string> given = given_fields(proto, fields);
    if (!given.empty()) {
      spdlog::debug("strategy: {}: of parameter servers, without meaning in collective training",
                    join(given, ", "));
    }
    return nullptr;
  };
}

}  // namespace fleet
