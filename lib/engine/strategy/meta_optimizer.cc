#include "strategy/meta_optimizer.h"

#include <algorithm>

#include "strategy/fields.h"

namespace fleet {
namespace {

class OnePass : public MetaOptimizer {
 public:
  explicit OnePass(const PassSwitch& on) : on_(on) {}
  void fuse_forward(BuildContext& build) override { run(PassPhase::kFuseForward, build); }
  void fuse_backward(BuildContext& build) override { run(PassPhase::kFuseBackward, build); }
  void gradients(BuildContext& build) override { run(PassPhase::kGradients, build); }
  void fuse_update(BuildContext& build) override { run(PassPhase::kFuseUpdate, build); }

 private:
  void run(PassPhase phase, BuildContext& build) const {
    if (phase == on_.phase) run_pass(on_.pass, build.program, build.context);
  }
  const PassSwitch on_;
};

}  // namespace

Registry<MetaOptimizerDef>& meta_optimizer_registry() {
  static Registry<MetaOptimizerDef> registry("meta-optimizer");
  return registry;
}

MetaOptimizerDefs meta_optimizers_by_position() {
  MetaOptimizerDefs defs;
  for (const std::string& name : meta_optimizer_registry().names()) {
    defs.push_back(&meta_optimizer_registry().get(name));
  }
  std::ranges::stable_sort(defs, {}, &MetaOptimizerDef::position);
  return defs;
}

bool register_meta_optimizer(const std::string& name, void (*define)(MetaOptimizerDef&)) {
  return meta_optimizer_registry().define(name, define, {.name = name});
}

void switch_pass(MetaOptimizerDef& def, const PassSwitch& on) {
  def.fields = {on.field};
  def.requested = [on](const StrategyProto& proto) {
    return given_boolean(proto, on.field).value_or(on.unset);
  };
  def.create = [on](const StrategyProto&, const PassContext&) {
    return std::make_unique<OnePass>(on);
  };
}

}  // namespace fleet
