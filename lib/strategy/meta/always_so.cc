#include "strategy/meta_optimizer.h"

namespace fleet {

// Whatever these say: operations run in the program's order, and the Plan lets outputs take their
// inputs' memory wherever that is safe.
FLEET_META_OPTIMIZER(always_so) {
  def.help = "what is so whatever the strategy says";
  def.fields = {"build_strategy.enable_sequential_execution", "build_strategy.enable_inplace"};
}

}  // namespace fleet
