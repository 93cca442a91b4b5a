#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "strategy/meta/model_values.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr char kConfigs[] = "strategy recompute_configs.checkpoints";

// "every block" is 1, "every 3 blocks" is 3; nullopt for a name.
std::optional<int> blocks_between(const std::string& text) {
  constexpr std::string_view kBegin = "every ", kEnd = " blocks";
  if (text == "every block") return 1;
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) return std::nullopt;
  const char* begin = text.data() + kBegin.size();
  const char* end = text.data() + text.size() - kEnd.size();
  int count = 0;
  const auto [rest, error] = std::from_chars(begin, std::max(begin, end), count);
  if (error == std::errc() && rest == end && count >= 1) return count;
  throw Error(ErrorCode::kUsage, "'" + text + "' does not name a number of blocks", kConfigs,
              "write \"every block\" or, for example, \"every 2 blocks\"");
}

bool offloads(const paddle::fleet::RecomputeConfig& configs, const PassContext& context) {
  if (!configs.checkpoint_shape().empty()) {
    spdlog::info(
        "strategy: recompute_configs.checkpoint_shape has no effect: the shapes of checkpoints are "
        "known");
  }
  if (configs.enable_offload() && context.host_memory) {
    spdlog::warn(
        "strategy: recompute_configs.enable_offload has no effect on CPUs, whose memory is the "
        "host's");
    return false;
  }
  return configs.enable_offload();
}

class Recompute : public MetaOptimizer {
 public:
  Recompute(std::vector<std::string> checkpoints, bool offload)
      : checkpoints_(std::move(checkpoints)), offload_(offload) {}

  // Resolves names before other rewrites, so that an error uses the model's names.
  void forward(BuildContext& build) override {
    for (const std::string& checkpoint : checkpoints_) {
      if (const std::optional<int> every = blocks_between(checkpoint)) {
        add_every(build, *every);
      } else {
        found_.push_back(find_value(build, checkpoint, kConfigs, "every block, "));
      }
    }
  }

  void fuse_backward(BuildContext& build) override {
    for (const VarId id : found_) {
      require_value(build, id, kConfigs);
      names_.push_back(build.program.var(id).name);
    }
    run_pass("recompute", build.program, build.context,
             {{"forward", build.program.sections()[build.forward].name}, {"checkpoints", names_}});
  }

  // Runs after the communication is in place, so that the copies get a separate stream.
  void fuse_update(BuildContext& build) override {
    if (!offload_) return;
    run_pass("offload", build.program, build.context,
             {{"forward", build.program.sections()[build.forward].name}, {"variables", names_}});
  }

 private:
  void add_every(const BuildContext& build, int count) {
    const std::vector<Block>& blocks = build.blocks;
    for (size_t i = count - 1; i < blocks.size(); i += count) found_.push_back(blocks[i].output);
    if (blocks.size() >= static_cast<size_t>(count)) return;
    throw Error(ErrorCode::kUsage,
                "the model has " + std::to_string(blocks.size()) + " blocks: too few for every " +
                    std::to_string(count),
                kConfigs,
                blocks.empty() ? "name variables of the model"
                               : "use a smaller number, or names of variables of the model");
  }

  const std::vector<std::string> checkpoints_;
  const bool offload_;
  std::vector<VarId> found_;
  std::vector<std::string> names_;  // names of found_
};

}  // namespace

// Fields as in Paddle's RecomputeOptimizer; the rewrite is in passes/recompute.cc.
FLEET_META_OPTIMIZER(recompute) {
  def.help =
      "activations between checkpoints are recomputed in the backward pass instead of being kept";
  def.position = 290;
  def.fields = {"recompute", "recompute_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.recompute(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext&) -> std::string {
    if (!proto.recompute_configs().checkpoints().empty()) return "";
    return "recompute_configs.checkpoints is empty: name blocks or variables of the model, or "
           "\"every block\"";
  };
  def.paddle_class = "RecomputeOptimizer";
  def.wraps = {"lars", "lamb", "dgc"};
  def.create = [](const StrategyProto& proto, const PassContext& context) {
    const auto& configs = proto.recompute_configs();
    const auto& names = configs.checkpoints();
    return std::make_unique<Recompute>(std::vector<std::string>(names.begin(), names.end()),
                                       offloads(configs, context));
  };
  def.when = "if activations do not fit into memory, or for a larger batch";
  def.cost = "most of the forward pass runs twice: up to a third more time";
  def.figure =
      "ResNet-50, one checkpoint per block: 0.38 × the memory for activations, 1.34 × the time of "
      "a step";
}

}  // namespace fleet
