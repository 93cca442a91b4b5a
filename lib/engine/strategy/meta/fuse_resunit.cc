#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

// Convolutions absorb the batch normalisations around them; only some backends can, in float16.
class FuseResunit : public MetaOptimizer {
 public:
  void fuse_backward(BuildContext& build) override {
    const PassContext& context = build.context;
    const std::string pass = "fuse_resunit";
    if (build.low == DType::kFloat16 && context.backend_has(pass)) {
      run_pass(pass, build.program, context);
      return;
    }
    spdlog::warn(
        "strategy: build_strategy.fuse_resunit has no effect: it is for convolutions in float16 on "
        "a GPU, and this job computes in {} on {}",
        name_of(build.low.value_or(DType::kFloat32)), context.backend);
  }
};

}  // namespace

FLEET_META_OPTIMIZER(fuse_resunit) {
  def.help = "convolutions absorb the batch normalisations around them (float16 on a GPU)";
  def.position = 220;
  def.fields = {"build_strategy.fuse_resunit"};
  def.requested = [](const StrategyProto& proto) { return proto.build_strategy().fuse_resunit(); };
  def.create = [](const StrategyProto&, const PassContext&) {
    return std::make_unique<FuseResunit>();
  };
  def.when = "for residual networks in float16 on a GPU where a measurement shows a gain";
  def.cost = "a search for cuDNN plans at the start; cuDNN's fused plans may be slower";
  def.figure = "ResNet50 on an H200: 0.96 times the speed (docs/performance/gpu.md)";
}

}  // namespace fleet
