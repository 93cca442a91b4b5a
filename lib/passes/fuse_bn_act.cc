// fuse_bn_act: batch normalisation computes the activation that follows it.
#include "base/log.h"
#include "passes/fuse_activation.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseBnAct : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    const int fused = fuse_activations(program, "batch_norm");
    if (fused) spdlog::debug("fuse_bn_act: {} batch_norm operations take in an activation", fused);
    return fused > 0;
  }
};

}  // namespace

FLEET_PASS(fuse_bn_act) {
  def.help = "batch normalisation computes the activation that follows it";
  def.create = [](const Attributes&) -> std::unique_ptr<Pass> {
    return std::make_unique<FuseBnAct>();
  };
}

}  // namespace fleet
