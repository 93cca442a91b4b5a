#include "api/recipe.h"

#include "base/error.h"
#include "base/log.h"
#include "train/device_settings.h"

namespace fleet {

ConfigTree tree_of(const Recipe& recipe, const Values& keys, const World& world) {
  if (!recipe.minimized) {
    throw Error(ErrorCode::kUsage, "the model has no optimizer", "ProgramExecutor",
                "call distributed_optimizer(...).minimize(model.loss()) first");
  }
  ConfigTree tree = recipe.tree;
  apply_flags(tree);
  if (!world.servers.empty()) {
    for (const std::string& line : apply_server_flags(tree)) {
      if (world.rank == 0 && world.server < 0) spdlog::info("{}", line);
    }
  }
  for (const auto& [key, value] : keys) tree.set(key, value.text(), "ProgramExecutor");
  divide_global_batch(tree, world.size);
  return tree;
}

}  // namespace fleet
