#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr const char* kBnActField = "build_strategy.fuse_bn_act_ops";

// relu everywhere; relu6, silu and hardswish on backends that have the kernels, unless ranks share
// statistics: sync_batch_norm cuts normalizations into parts that know relu only.
class FuseBnAct : public MetaOptimizer {
 public:
  explicit FuseBnAct(bool recomputed) : recomputed_(recomputed) {}

  void fuse_forward(BuildContext& build) override {
    run_pass("fuse_bn_act", build.program, build.context);
    const std::string pass = "fuse_bn_recomputed_act";
    if (recomputed_ && build.context.backend_has(pass)) {
      run_pass(pass, build.program, build.context);
    }
  }

 private:
  const bool recomputed_;
};

}  // namespace

// If the user did not set it, fleetrun fuses (Paddle does not).
FLEET_META_OPTIMIZER(fuse_bn_act) {
  def.help = "batch normalisation and the following activation are fused into one operation";
  def.position = 110;
  def.fields = {kBnActField};
  def.requested = [](const StrategyProto& proto) {
    return given_boolean(proto, kBnActField).value_or(true);
  };
  def.create = [](const StrategyProto& proto, const PassContext& context) {
    const bool shared = proto.sync_batch_norm() && context.data_parallel_degree() > 1;
    return std::make_unique<FuseBnAct>(!shared);
  };
  def.when = "always, for networks with batch normalisation";
  def.cost = "nothing: it saves a pass over the activations, forward and backward";
  def.figure =
      "ResNet50 on two cores, with fuse_elewise_add_act: 1.00 to 1.01 times the speed of a step "
      "(`scripts/bench.sh fusions`)";
}

}  // namespace fleet
