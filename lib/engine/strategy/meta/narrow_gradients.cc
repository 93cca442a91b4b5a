#include "strategy/meta/narrow_gradients.h"

#include "base/log.h"
#include "strategy/fields.h"

namespace fleet {
namespace {

class NarrowGradients : public MetaOptimizer {
 public:
  NarrowGradients(std::string name, DType low) : name_(std::move(name)), low_(low) {}
  void gradients(BuildContext& build) override {
    if (build.sums_gradients) {
      run_pass("narrow_gradients", build.program, build.context,
               {{"to", std::string(name_of(low_))}});
      return;
    }
    spdlog::warn("strategy: {} has no effect: ranks exchange no gradients", name_);
  }

 private:
  const std::string name_;
  const DType low_;
};

}  // namespace

// Under amp, gradients of low-type operations are reduced in the low type anyway.
void narrow_gradients(MetaOptimizerDef& def, const std::string& name, DType low) {
  def.position = 320;
  def.fields = {name};
  def.requested = [name](const StrategyProto& proto) {
    return given_boolean(proto, name).value_or(false);
  };
  def.wraps = {"lars", "lamb", "recompute", "localsgd", "gradient_merge", "adaptive_localsgd"};
  def.create = [name, low](const StrategyProto&, const PassContext&) {
    return std::make_unique<NarrowGradients>(name, low);
  };
  def.when =
      "if the network between ranks is the bottleneck and the job computes in float32; amp "
      "exchanges gradients in 16 bits anyway";
}

}  // namespace fleet
