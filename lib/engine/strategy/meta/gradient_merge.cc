#include "base/log.h"
#include "strategy/meta_optimizer.h"
#include "strategy/server_mode.h"

namespace fleet {
namespace {

// Accumulates the gradients of k steps; every k-th step sums them over the ranks and updates the
// parameters: a batch k times as large in the memory of one.
class GradientMerge : public MetaOptimizer {
 public:
  // pushes: servers make the updates. apart: trainers are at different steps, and trainer 0 saves
  // checkpoints alone, so that these have no sums of each.
  GradientMerge(int64_t steps, bool average, bool pushes, bool apart)
      : steps_(steps), average_(average), pushes_(pushes), apart_(apart) {}

  void forward(BuildContext& build) override {
    if (average_) build.loss_factor /= static_cast<double>(steps_);
    if (build.context.rank != 0) return;
    spdlog::info(
        "gradient_merge: parameters are updated every {} steps, as with {} times the batch size; "
        "steps, epochs and the schedule of the learning rate count batches as they are read",
        steps_, steps_);
  }
  void gradients(BuildContext& build) override {
    run_pass("merge_gradients", build.program, build.context, {{"saved", !apart_}});
    build.update_when = {.every = steps_};
    build.sums_in = build.program.add_section("sum_gradients", build.update_when);
  }
  // Updates do not run on trainers of parameter servers, so a run after each push zeroes the sums.
  void fuse_update(BuildContext& build) override {
    std::string section = "optimize";
    if (pushes_) {
      section = "pushed";
      build.program.add_section(section, {.training = false, .sync = true});
    }
    run_pass("zero_accumulators", build.program, build.context, {{"section", section}});
  }

 private:
  const int64_t steps_;
  const bool average_, pushes_, apart_;
};

}  // namespace

// Fields as in Paddle's GradientMergeOptimizer.
FLEET_META_OPTIMIZER(gradient_merge) {
  def.help =
      "gradients of several steps are accumulated before they are summed over ranks and applied";
  def.position = 315;
  def.fields = {"gradient_merge", "gradient_merge_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.gradient_merge(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext&) -> std::string {
    const int steps = proto.gradient_merge_configs().k_steps();
    if (steps < 1) {
      throw Error(ErrorCode::kUsage, "gradient_merge_configs.k_steps is " + std::to_string(steps),
                  "strategy", "set it to 1 or more");
    }
    return steps == 1 ? "gradient_merge_configs.k_steps is 1" : "";
  };
  def.paddle_class = "GradientMergeOptimizer";
  def.wraps = {"amp", "lars", "lamb", "recompute"};
  def.create = [](const StrategyProto& proto, const PassContext& context) {
    const auto& configs = proto.gradient_merge_configs();
    const ServerSettings servers = server_settings(proto);
    const bool pushes = context.servers > 0 && servers.mode != ServerMode::kGeo;
    const bool apart = context.servers > 0 && servers.apart();
    return std::make_unique<GradientMerge>(configs.k_steps(), configs.avg(), pushes, apart);
  };
  def.when =
      "for a batch that does not fit into memory, and to send gradients only every k-th step over "
      "a slow network";
  def.cost = "float32 accumulators as large as the parameters; k times fewer updates per epoch";
  def.figure =
      "ResNet18, k = 4: a quarter of the bytes on the wire, 11.24 MB instead of 44.97 per step "
      "(docs/performance/communication.md)";
}

}  // namespace fleet
