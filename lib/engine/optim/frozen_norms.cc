#include "optim/frozen_norms.h"

#include <algorithm>

namespace fleet {

int freeze_batch_norms(Program& program, bool fix) {
  constexpr size_t kScale = 1, kBias = 2, kFirstStatistic = 1;  // slots of batch_norm
  const auto is_fixed = [&](VarId id) { return !program.var(id).trainable; };
  int count = 0;
  for (Op& op : program.ops()) {
    if (op.type() != "batch_norm" || op.attributes.boolean("is_test")) continue;
    if (!is_fixed(op.inputs[kScale]) || !is_fixed(op.inputs[kBias])) continue;
    ++count;
    if (!fix) continue;
    op.attributes.set("is_test", true);
    std::fill(op.outputs.begin() + kFirstStatistic, op.outputs.end(), kNoVar);
  }
  return count;
}

}  // namespace fleet
