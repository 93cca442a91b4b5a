#include "passes/uses.h"

#include <utility>

namespace fleet {

Uses::Uses(const Program& program) : readers_(program.var_count()), writers_(program.var_count()) {
  for (size_t i = 0; i < program.ops().size(); ++i) {
    for (const VarId id : program.ops()[i].reads()) readers_[id].push_back(static_cast<int>(i));
    for (const VarId id : program.ops()[i].writes()) writers_[id].push_back(static_cast<int>(i));
  }
}

void insert_behind_writers(Program& program,
                           const std::function<void(VarId, std::vector<Op>*)>& append) {
  const Uses uses(program);
  std::vector<Op> ops;
  std::vector<Op> old = std::move(program.ops());
  for (size_t i = 0; i < old.size(); ++i) {
    const std::vector<VarId> outputs = old[i].outputs;
    ops.push_back(std::move(old[i]));
    for (const VarId id : outputs) {
      if (id != kNoVar && uses.writer(id) == static_cast<int>(i)) append(id, &ops);
    }
  }
  program.ops() = std::move(ops);
}

void remove_ops(Program& program, const std::vector<bool>& removed) {
  std::vector<Op> kept;
  for (size_t i = 0; i < removed.size(); ++i) {
    if (!removed[i]) kept.push_back(std::move(program.ops()[i]));
  }
  program.ops() = std::move(kept);
}

}  // namespace fleet
