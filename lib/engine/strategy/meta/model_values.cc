#include "strategy/meta/model_values.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace fleet {

VarId find_value(const BuildContext& build, const std::string& name, const std::string& setting,
                 const std::string& words) {
  std::vector<std::string> known, blocks;
  for (const Block& block : build.blocks) {
    if (block.name == name) return block.output;
    known.push_back(block.name);
    blocks.push_back(block.name);
  }
  for (const Op& op : build.program.ops()) {
    if (op.section != build.forward) continue;
    for (const VarId id : op.outputs) {
      if (id == kNoVar || build.program.var(id).kind != VarKind::kTemporary) continue;
      if (build.program.var(id).name == name) return id;
      known.push_back(build.program.var(id).name);
    }
  }
  throw Error(ErrorCode::kUsage, "the model has no variable '" + name + "'", setting,
              suggestion(name, known) + "; its blocks: " + words + join(blocks, ", "));
}

void require_value(const BuildContext& build, VarId id, const std::string& setting) {
  for (const Op& op : build.program.ops()) {
    if (op.section != build.forward) continue;
    if (std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end()) return;
  }
  const Var& var = build.program.var(id);
  if (var.kind != VarKind::kTemporary) {
    throw Error(ErrorCode::kUsage, "'" + var.name + "' is an input of the model, not a result",
                setting, "name a block behind a layer, or the result of a layer");
  }
  throw Error(ErrorCode::kUsage, "'" + var.name + "' is no longer computed: a fusion absorbed it",
              setting, "name what follows it, such as its activation or its block");
}

}  // namespace fleet
