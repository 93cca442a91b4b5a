// fuse_elewise_add_act: an addition computes the activation that follows it.
#include "passes/fuse_activation.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseElewiseAddAct : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    const int fused = fuse_activations(program, "elementwise_add");
    if (fused) log_fused("fuse_elewise_add_act", count_fused(program, "elementwise_add"));
    return fused > 0;
  }
};

}  // namespace

FLEET_PASS(fuse_elewise_add_act) {
  def.help = "an addition computes the activation that follows it";
  def.create = [](const Attributes&) -> std::unique_ptr<Pass> {
    return std::make_unique<FuseElewiseAddAct>();
  };
}

}  // namespace fleet
