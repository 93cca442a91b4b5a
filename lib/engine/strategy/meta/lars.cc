#include "base/log.h"
#include "base/text.h"
#include "strategy/meta/replacement_rule.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

class Lars : public MetaOptimizer {
 public:
  explicit Lars(paddle::fleet::LarsConfig config) : config_(std::move(config)) {}

  void update(BuildContext& build) override {
    if (build.optimizer.boolean("use_nesterov")) {
      spdlog::warn("strategy: optimizer.use_nesterov has no effect: lars has one momentum");
    }
    const auto& excluded = config_.exclude_from_weight_decay();
    build.optimizer = replacement_rule(
        build.optimizer, "lars",
        {{"momentum", text_of_float(static_cast<float>(build.optimizer.number("momentum")))},
         {"lars_coeff", text_of_float(config_.lars_coeff())},
         {"weight_decay", text_of_float(config_.lars_weight_decay())},
         {"epsilon", text_of_float(config_.epsilon())},
         {"exclude_from_weight_decay",
          join(std::vector<std::string>(excluded.begin(), excluded.end()), ",")}});
  }

 private:
  const paddle::fleet::LarsConfig config_;
};

}  // namespace

// Fields, rule and exclusion (by a part of a parameter's name) as in Paddle's LarsOptimizer; the
// rule is in optim/lars.cc.
FLEET_META_OPTIMIZER(lars) {
  def.help = "momentum with a separate rate for each parameter, for large batches";
  def.position = 400;
  def.fields = {"lars", "lars_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.lars(); };
  def.obstacle = [](const StrategyProto&, const PassContext& context) -> std::string {
    if (context.optimizer == "momentum") return "";
    return "it needs optimizer.name momentum, but this job's is " + context.optimizer;
  };
  def.paddle_class = "LarsOptimizer";
  def.create = [](const StrategyProto& proto, const PassContext&) {
    return std::make_unique<Lars>(proto.lars_configs());
  };
  def.when = "for batches of thousands of samples with Momentum, as in ResNet50 on many ranks";
  def.cost = "norms of each parameter and gradient: both are read twice";
  def.figure =
      "1.25 to 1.31 times the time of momentum's update at ResNet50's parameters "
      "(`scripts/bench.sh updates`)";
}

}  // namespace fleet
