#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

class Fp16AllReduce : public MetaOptimizer {
 public:
  void gradients(Build& build) override {
    if (build.sums_gradients) {
      run_pass("fp16_allreduce", build.program, build.context);
      return;
    }
    spdlog::warn("strategy: fp16_allreduce has no effect: gradients do not travel");
  }
};

}  // namespace

// Under amp gradients of low operations are reduced in the low type anyway.
FLEET_META_OPTIMIZER(fp16_allreduce) {
  def.help = "gradients travel in float16";
  def.position = 320;
  def.fields = {"fp16_allreduce"};
  def.asked = [](const StrategyProto& proto) { return proto.fp16_allreduce(); };
  def.paddle_class = "FP16AllReduceOptimizer";
  def.wraps = {"lars", "lamb", "recompute", "localsgd", "gradient_merge", "adaptive_localsgd"};
  def.create = [](const StrategyProto&, const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    return std::make_unique<Fp16AllReduce>();
  };
  def.when =
      "where the network between ranks is the bottleneck and the job computes in float32; amp's "
      "gradients travel in 16 bits anyway";
  def.cost =
      "sums have float16's 11 bits, and what is above 65504 becomes infinite; two casts a "
      "gradient";
  def.figure = "half the bytes on the wire";
}

}  // namespace fleet
