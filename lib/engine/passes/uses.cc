#include "passes/uses.h"

#include <utility>

namespace fleet {

Uses::Uses(const Program& program) : readers_(program.var_count()), writers_(program.var_count()) {
  for (size_t i = 0; i < program.ops().size(); ++i) {
    for (const VarId id : program.ops()[i].inputs) {
      if (id != kNoVar) readers_[id].push_back(static_cast<int>(i));
    }
    for (const VarId id : program.ops()[i].outputs) {
      if (id != kNoVar) writers_[id].push_back(static_cast<int>(i));
    }
  }
}

void remove_ops(Program& program, const std::vector<bool>& removed) {
  std::vector<Op> kept;
  for (size_t i = 0; i < removed.size(); ++i) {
    if (!removed[i]) kept.push_back(std::move(program.ops()[i]));
  }
  program.ops() = std::move(kept);
}

}  // namespace fleet
