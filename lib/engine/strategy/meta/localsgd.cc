// localsgd: ranks train separately and average their parameters now and then (Lin et al., 2019, in
// the form of Paddle's LocalSGDOptimizer). Steps count from 1: after each step up to begin_step,
// then after every k_steps-th, p = sum over ranks of p / ranks.
#include "strategy/meta/average_parameters.h"

namespace fleet {
namespace {

class LocalSgd : public AverageParameters {
 public:
  LocalSgd(int64_t every, int64_t begin) : every_(every), begin_(begin) {}

  void before_step(HostStep& step) override {
    const int64_t number = step.info.step + 1;
    if (number <= begin_ || (number - begin_) % every_ == 0) request(step);
  }

 private:
  const int64_t every_, begin_;
};

}  // namespace

FLEET_META_OPTIMIZER(localsgd) {
  def.help = "ranks train separately and average their parameters every k steps";
  def.position = 340;
  def.fields = {"localsgd", "localsgd_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.localsgd(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) {
    require_positive("localsgd_configs", "k_steps", proto.localsgd_configs().k_steps());
    require_positive("localsgd_configs", "begin_step", proto.localsgd_configs().begin_step());
    return averaging_obstacle(context);
  };
  def.paddle_class = "LocalSGDOptimizer";
  def.wraps = {"amp"};
  def.needs_float32 = kAveragesNeedFloat32;
  def.create = [](const StrategyProto& proto, const PassContext&) {
    const auto& configs = proto.localsgd_configs();
    return std::make_unique<LocalSgd>(configs.k_steps(), configs.begin_step());
  };
  def.when = "over slow networks, if fewer bytes are worth a little accuracy";
  def.cost =
      "ranks drift apart between two averages; momentum stays local to each rank, and "
      "checkpoints contain a part for every rank";
  def.figure = "ResNet-18, k_steps of 4: a quarter of the bytes on the wire";
}

}  // namespace fleet
