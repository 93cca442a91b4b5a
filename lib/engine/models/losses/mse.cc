// Squared errors.
#include "models/losses.h"

namespace fleet {

FLEET_LOSS(mse) {
  def.help = "the mean of squared errors (L2)";
  def.of_numbers = [](TaskBuilder& task, VarId errors) {
    return task.emit("elementwise_mul", {errors, errors}, {}, "squared_errors");
  };
}

}  // namespace fleet
