#include "passes/sharding.h"

#include <algorithm>

#include "base/log.h"
#include "passes/owners.h"
#include "strategy/meta/all_reduce.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

using paddle::fleet::ShardingConfig;

// ZeRO's stages: the last kind of tensor that each divides among the ranks of a group.
enum Stage { kOptimizerStates = 1, kGradients = 2, kParameters = 3 };

[[noreturn]] void refuse_sharding(const std::string& field, const std::string& what,
                                  const std::string& next, ErrorCode code = ErrorCode::kUsage) {
  throw Error(code, "sharding_configs." + field + " " + what, "strategy", next);
}

// The number of ranks that share one copy of the parameters.
int sharding_degree(const ShardingConfig& config, int ranks) {
  const std::string with = ", with " + std::to_string(ranks) + " ranks";
  const int copies = config.dp_degree();
  if (copies > 1) {
    if (ranks % copies != 0 || ranks == copies) {
      refuse_sharding("dp_degree", "is " + std::to_string(copies) + with,
                      ranks == copies ? "remove sharding: each rank would have all parameters"
                                      : "set it to a divisor of the number of ranks, below it");
    }
    const int degree = ranks / copies;
    if (config.has_sharding_degree() && config.sharding_degree() != degree) {
      refuse_sharding("sharding_degree",
                      "is " + std::to_string(config.sharding_degree()) + " and dp_degree " +
                          std::to_string(copies) + with,
                      "set sharding_degree to " + std::to_string(degree) + ", or remove it");
    }
    return degree;
  }
  if (config.hybrid_dp()) {
    const bool newer = config.has_sharding_degree();
    const int degree = newer ? config.sharding_degree() : config.sharding_group_size();
    const std::string name = newer ? "sharding_degree" : "sharding_group_size";
    if (degree < 2 || ranks % degree != 0) {
      refuse_sharding(name,
                      "is " + std::to_string(degree) + with + ", which hybrid_dp divides by it",
                      "set it to a divisor of the number of ranks above 1, or remove hybrid_dp");
    }
    return degree;
  }
  if (config.has_sharding_degree() && config.sharding_degree() != ranks) {
    refuse_sharding("sharding_degree", "is " + std::to_string(config.sharding_degree()) + with,
                    "remove it, or set dp_degree to the number of groups");
  }
  if (config.has_sharding_group_size() && config.sharding_group_size() != ranks) {
    spdlog::warn("strategy: sharding_group_size has no effect: hybrid_dp is off");
  }
  return ranks;
}

void check_config(const ShardingConfig& config) {
  for (const auto& [field, value] :
       {std::pair("mp_degree", config.mp_degree()), {"pp_degree", config.pp_degree()}}) {
    if (value == 1) continue;
    refuse_sharding(field, "is " + std::to_string(value) + ": not supported with sharding",
                    "set it to 1, or remove it", ErrorCode::kUnsupported);
  }
  if (config.optimize_offload()) {
    refuse_sharding("optimize_offload", "is not supported", "remove it", ErrorCode::kUnsupported);
  }
  if (config.sharding_segment_strategy() != "segment_broadcast_MB") {
    refuse_sharding("sharding_segment_strategy",
                    "is '" + config.sharding_segment_strategy() + "': not supported",
                    "set it to segment_broadcast_MB, or remove it", ErrorCode::kUnsupported);
  }
  if (!config.segment_anchors().empty()) {
    spdlog::warn("strategy: segment_anchors has no effect: segments are cut by their size");
  }
  if (config.pp_allreduce_in_optimize()) {
    spdlog::warn(
        "strategy: pp_allreduce_in_optimize has no effect: gradients are summed once a step");
  }
  if (config.optimize_cast()) {
    spdlog::warn("strategy: optimize_cast has no effect: parameters are not cast in each step");
  }
  if (config.stage() < kOptimizerStates || config.stage() > kParameters) {
    refuse_sharding("stage", "is " + std::to_string(config.stage()), "set it to 1, 2 or 3");
  }
  if (config.gradient_merge_acc_step() < 1) {
    refuse_sharding("gradient_merge_acc_step",
                    "is " + std::to_string(config.gradient_merge_acc_step()),
                    "set it to 1 or more");
  }
}

struct ShardingSettings {
  Stage stage = kParameters;
  int degree = 1;         // ranks that share one copy of the parameters
  double megabytes = 32;  // per segment
  int merged_steps = 1;   // gradient_merge_acc_step
  AllReduceSettings sums;
};

class Sharding : public MetaOptimizer {
 public:
  explicit Sharding(const ShardingSettings& settings) : settings_(settings) {}

  void groups(BuildContext& build) override {
    Program& program = build.program;
    const std::vector<int> all = build.context.data_parallel_ranks();
    const auto own = std::find(all.begin(), all.end(), build.context.rank) - all.begin();
    const auto degree = settings_.degree;
    place_ = static_cast<int>(own) % degree;
    const auto first = all.begin() + (own - place_);
    const bool own_memory = settings_.stage >= kGradients;
    messages_.group = program.add_group(
        {.name = "sharding", .ranks = {first, first + degree}, .own_memory = own_memory});
    savers_ = {all.begin(), all.begin() + degree};
    checks_.group = messages_.group;
    if (degree < static_cast<int>(all.size())) {
      std::vector<int> copies;
      for (size_t i = place_; i < all.size(); i += degree) copies.push_back(all[i]);
      copies_ = program.add_group(
          {.name = "copies of a shard", .ranks = copies, .own_memory = own_memory});
      checks_.group =
          program.add_group({.name = "data parallel", .ranks = all, .own_memory = own_memory});
    }
    build.sums_on_owners = true;
  }

  void forward(BuildContext& build) override { build.loss_factor /= settings_.merged_steps; }

  void gradients(BuildContext& build) override {
    if (settings_.merged_steps > 1) build.update_when = {.every = settings_.merged_steps};
  }

  void communication(BuildContext& build) override {
    owners_ = assign_contiguous_owners(build.program, settings_.degree, build.trained_later);
    messages_.fuse = settings_.sums.fuse;
    messages_.buckets = settings_.sums.buckets;
    sums_ = reduce_to_owners(build.program, owners_, messages_);
    if (copies_ >= 0) sum_over_copies(build.program, place_, copies_, messages_);
    if (settings_.stage >= kGradients) limit_unsent_gradients(build.program, messages_);
    if (settings_.merged_steps > 1) {
      accumulators_ = accumulate_on_owners(build.program, owners_, {place_, savers_});
    }
  }

  void update(BuildContext& build) override {
    check_on_owners(build.program, build.optimize, owners_, place_, checks_);
  }

  void fuse_update(BuildContext& build) override {
    Program& program = build.program;
    if (build.optimizer.text("clip") == "global_norm") {
      combine_norm(program, build.optimize, owners_, place_, messages_);
    }
    const Predicate when = program.sections()[build.optimize].when;
    const SectionId remote = program.add_section("update_remote", when, true);
    reset_accumulators(program, accumulators_, build.optimize, remote);
    shard_updates(program, build.optimize, remote, owners_, {place_, savers_});
    std::string parameters = "broadcast after the updates";
    if (settings_.stage < kParameters) {
      broadcast_from_owners(program, build.optimize, owners_, place_, /*fuse=*/true, messages_,
                            build.trained_later);
    } else {
      const int segments = fetch_parameters(program, owners_,
                                            {.group = messages_.group,
                                             .place = place_,
                                             .megabytes = settings_.megabytes,
                                             .optimize = build.optimize,
                                             .remote = remote,
                                             .savers = savers_});
      parameters = "fetched in " + std::to_string(segments) + " segments of " +
                   std::to_string(static_cast<int>(settings_.megabytes)) + " MB";
    }
    report(build, parameters);
  }

 private:
  void report(const BuildContext& build, const std::string& parameters) const {
    const auto own = std::count_if(owners_.begin(), owners_.end(),
                                   [&](const auto& entry) { return entry.second == place_; });
    const int copies = build.context.data_parallel_degree() / settings_.degree;
    const std::string groups = copies > 1 ? ", in " + std::to_string(copies) + " groups" : "";
    spdlog::info(
        "sharding, stage {}: this rank of {}{} owns {} of {} parameters; gradients are summed on "
        "their owners in {} messages, parameters are {}",
        static_cast<int>(settings_.stage), settings_.degree, groups, own, owners_.size(), sums_,
        parameters);
  }

  const ShardingSettings settings_;
  int place_ = 0;            // this rank's, in its group
  std::vector<int> savers_;  // the ranks of the first group
  GroupId copies_ = -1;      // the ranks with the same place; -1: there is one group
  int sums_ = 0;
  Owners owners_;
  OwnerMessages messages_, checks_;
  std::map<VarId, VarId> accumulators_;  // by parameter
};

ShardingSettings settings_of(const StrategyProto& proto, const PassContext& context) {
  const ShardingConfig& config = proto.sharding_configs();
  check_config(config);
  ShardingSettings settings;
  // Paddle's optimizer does not read `stage`: it always splits the parameters too.
  if (config.has_stage()) settings.stage = static_cast<Stage>(config.stage());
  settings.degree = sharding_degree(config, context.data_parallel_degree());
  settings.megabytes = config.has_segment_broadcast_mb() ? config.segment_broadcast_mb()
                                                         : config.fuse_broadcast_mb();
  if (settings.megabytes <= 0) {
    refuse_sharding(
        config.has_segment_broadcast_mb() ? "segment_broadcast_MB" : "fuse_broadcast_MB",
        "is not above 0", "set it to a number of MB");
  }
  settings.merged_steps = config.gradient_merge_acc_step();
  settings.sums = check_all_reduce(proto, context);
  if (settings.sums.communicators > 1 || settings.sums.group_size > 1) {
    spdlog::warn(
        "strategy: nccl_comm_num and use_hierarchical_allreduce have no effect with sharding: its "
        "groups have one communicator each");
  }
  return settings;
}

// One rank has nothing to split, but merges gradients as several do. Its accumulators are shared
// states, as theirs are: a checkpoint fits any number of ranks.
class MergeOnOneRank : public MetaOptimizer {
 public:
  explicit MergeOnOneRank(int64_t steps) : steps_(steps) {}

  void forward(BuildContext& build) override {
    build.loss_factor /= static_cast<double>(steps_);
    spdlog::info("sharding: one rank holds everything; parameters are updated every {} steps",
                 steps_);
  }
  void gradients(BuildContext& build) override {
    run_pass("merge_gradients", build.program, build.context, {{"per_rank", false}});
    build.update_when = {.every = steps_};
  }
  void fuse_update(BuildContext& build) override {
    run_pass("zero_accumulators", build.program, build.context);
  }

 private:
  const int64_t steps_;
};

bool merges_on_one_rank(const StrategyProto& proto, const PassContext& context) {
  return context.ranks == 1 && proto.sharding_configs().gradient_merge_acc_step() > 1;
}

}  // namespace

// Fields as in Paddle's ShardingOptimizer. Replaces all_reduce: runs after the check for infinite
// gradients, before updates are fused.
FLEET_META_OPTIMIZER(sharding) {
  def.help = "optimizer states, gradients and parameters are split over the ranks (ZeRO)";
  def.position = 406;
  def.fields = {"sharding", "sharding_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.sharding(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) -> std::string {
    const bool acts = context.data_parallel_degree() > 1 || merges_on_one_rank(proto, context);
    return acts ? "" : "it needs several ranks";
  };
  def.paddle_class = "ShardingOptimizer";
  def.wraps = {"recompute", "amp", "lars", "lamb"};
  def.create = [](const StrategyProto& proto,
                  const PassContext& context) -> std::unique_ptr<MetaOptimizer> {
    if (merges_on_one_rank(proto, context)) {
      check_config(proto.sharding_configs());
      return std::make_unique<MergeOnOneRank>(proto.sharding_configs().gradient_merge_acc_step());
    }
    return std::make_unique<Sharding>(settings_of(proto, context));
  };
  def.when = "if parameters, gradients and optimizer states do not fit into a rank's memory";
  def.cost =
      "stages 1 and 2 send as much as an allreduce, stage 3 half as much again; the last segment "
      "and the last gradients do not overlap with computation";
  def.figure =
      "4 ranks, 458 MB of parameters and Adam's states: 0.35 of the memory of a rank in stage 3, "
      "and 3 Ψ (N-1)/N bytes a step, as ZeRO says (`scripts/bench.sh sharding`)";
}

}  // namespace fleet
