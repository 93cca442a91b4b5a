#include <map>

#include "exec/stream_order.h"

namespace fleet {

std::vector<std::vector<Predecessor>> find_predecessors(const Plan& plan) {
  struct Touch {
    int writer = -1;           // the last one
    std::vector<int> readers;  // since then
  };
  std::vector<Touch> touched(plan.program.var_count());
  std::vector<std::vector<Predecessor>> all;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i].op;
    std::map<int, double> found;  // operation -> bytes
    const auto after_writer = [&](VarId id, size_t bytes) {
      if (id == kNoVar || touched[id].writer < 0) return;
      found[touched[id].writer] += static_cast<double>(bytes);
    };
    for (VarId id : op.inputs) after_writer(id, id == kNoVar ? 0 : plan.vars[id].bytes);
    for (VarId id : op.after) after_writer(id, 0);
    for (VarId id : op.outputs) {
      after_writer(id, 0);
      if (id == kNoVar) continue;
      for (int reader : touched[id].readers) found.try_emplace(reader, 0.0);
    }
    for (VarId id : op.reads()) touched[id].readers.push_back(static_cast<int>(i));
    for (VarId id : op.writes()) {
      touched[id].writer = static_cast<int>(i);
      touched[id].readers.clear();
    }
    all.emplace_back();
    for (const auto& [other, bytes] : found) all.back().push_back({other, bytes});
  }
  return all;
}

}  // namespace fleet
