#include "optim/layer_decay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/number_text.h"

namespace fleet {
namespace {

// Where layers end. A block that joins the next one ends none.
std::set<VarId> ends_of(std::span<const Block> blocks) {
  std::set<VarId> ends;
  for (const Block& block : blocks) {
    if (!block.joins_next) ends.insert(block.tail == kNoVar ? block.output : block.tail);
  }
  return ends;
}

// The layer of each parameter that the section reads: the number of layers that end before its
// first reader.
std::map<VarId, int> layers_of(const Program& program, SectionId forward,
                               const std::set<VarId>& ends) {
  std::map<VarId, int> layers;
  int layer = 0;
  for (const Op& op : program.ops()) {
    if (op.section != forward) continue;
    for (const VarId input : op.inputs) {
      if (input == kNoVar || program.var(input).kind != VarKind::kParameter) continue;
      layers.emplace(input, layer);
    }
    layer += static_cast<int>(
        std::ranges::count_if(op.outputs, [&](VarId output) { return ends.contains(output); }));
  }
  return layers;
}

}  // namespace

std::string set_layer_rates(Program& program, SectionId forward, std::span<const Block> blocks,
                            const Settings& optimizer) {
  const double decay = optimizer.number("layer_decay");
  if (decay == 1) return "";
  if (blocks.empty()) {
    throw Error(ErrorCode::kUsage, "the model names no blocks", "optimizer.layer_decay",
                "give rates by name with optimizer.groups, or call Network::block() in the model");
  }
  const std::set<VarId> ends = ends_of(blocks);
  const auto last = static_cast<int>(ends.size());
  double lowest = 1;
  for (const auto& [parameter, layer] : layers_of(program, forward, ends)) {
    Var& var = program.var(parameter);
    var.rate = std::pow(decay, last - layer);
    if (var.trainable) lowest = std::min(lowest, var.rate);
  }
  return "layer_decay " + number_text(decay) +
         ": the learning rate falls by this factor from block "
         "to block, from 1 behind '" +
         blocks.back().name + "' to " + number_text(lowest) + " at '" + blocks.front().name + "'";
}

}  // namespace fleet
