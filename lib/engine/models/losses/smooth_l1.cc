// Losses of errors that large ones do not dominate.
#include "models/losses.h"

namespace fleet {

static VarId append_smooth_l1(TaskBuilder& task, VarId errors, double beta) {
  return task.emit("smooth_l1", {errors}, {{"beta", beta}}, "error_losses");
}

FLEET_LOSS(l1) {
  def.help = "the mean of absolute errors";
  def.of_numbers = [](TaskBuilder& task, VarId errors) {
    return append_smooth_l1(task, errors, 0);
  };
}

FLEET_LOSS(smooth_l1) {
  def.help = "squares of small errors, absolute values of large ones";
  def.schema.number("smooth_l1_beta", 1, 0, 1e9,
                    "error from which smooth_l1 is linear: e^2 / (2 beta) below it, else |e| - "
                    "beta / 2");
  def.of_numbers = [](TaskBuilder& task, VarId errors) {
    return append_smooth_l1(task, errors, task.settings().number("smooth_l1_beta"));
  };
}

}  // namespace fleet
