// Reduce mode (build_strategy.reduce_strategy): each parameter is updated on its owner rank.
#include <algorithm>

#include "base/log.h"
#include "passes/owners.h"
#include "strategy/meta/all_reduce.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

class Reduce : public MetaOptimizer {
 public:
  Reduce(const AllReduceSettings& settings, bool fuse_broadcasts)
      : settings_(settings), fuse_broadcasts_(fuse_broadcasts) {}

  void communication(BuildContext& build) override {
    if (build.sums_on_owners) {
      spdlog::warn("strategy: reduce_strategy has no effect: sharding has owners of its own");
      return;
    }
    if (!build.sums_gradients) {
      spdlog::warn("strategy: reduce_strategy has no effect: ranks exchange no gradients");
      return;
    }
    const std::vector<int> ranks = build.context.data_parallel_ranks();
    place_ =
        static_cast<int>(std::find(ranks.begin(), ranks.end(), build.context.rank) - ranks.begin());
    owners_ = assign_owners(build.program, static_cast<int>(ranks.size()));
    if (owners_.empty()) return;
    messages_ = {.group = build.program.add_group({.name = "data parallel", .ranks = ranks}),
                 .fuse = settings_.fuse,
                 .buckets = settings_.buckets,
                 .section = build.sums_in};
    sums_ = reduce_to_owners(build.program, owners_, messages_);
  }

  void update(BuildContext& build) override {
    if (owners_.empty()) return;
    check_on_owners(build.program, build.optimize, owners_, place_, messages_);
  }

  void fuse_update(BuildContext& build) override {
    if (owners_.empty()) return;
    const bool global_norm = build.optimizer.text("clip") == "global_norm";
    update_on_owners(build.program, build.optimize, owners_, place_, global_norm, messages_);
    const int broadcasts = broadcast_from_owners(build.program, build.optimize, owners_, place_,
                                                 fuse_broadcasts_, messages_);
    const auto own = std::count_if(owners_.begin(), owners_.end(),
                                   [&](const auto& entry) { return entry.second == place_; });
    spdlog::info(
        "Reduce mode: this rank updates {} of {} parameters; gradients are sent to their owners in "
        "{} messages, parameters back in {}",
        own, owners_.size(), sums_, broadcasts);
  }

 private:
  const AllReduceSettings settings_;
  const bool fuse_broadcasts_;
  int place_ = 0, sums_ = 0;
  Owners owners_;
  OwnerMessages messages_;
};

}  // namespace

// Replaces all_reduce: runs after the check for infinite gradients, before updates are fused.
FLEET_META_OPTIMIZER(reduce) {
  def.help = "each parameter is updated on one rank, its owner, and broadcast to the others";
  def.position = 405;
  def.fields = {"build_strategy.reduce_strategy"};
  def.requested = [](const StrategyProto& proto) {
    return proto.build_strategy().reduce_strategy() == kReduceMode;
  };
  def.obstacle = [](const StrategyProto&, const PassContext& context) -> std::string {
    return context.data_parallel_degree() <= 1 ? "it needs several ranks" : "";
  };
  def.create = [](const StrategyProto& proto, const PassContext& context) {
    const AllReduceSettings settings = check_all_reduce(proto, context);
    if (settings.communicators > 1 || settings.group_size > 1) {
      spdlog::warn(
          "strategy: nccl_comm_num and use_hierarchical_allreduce have no effect in Reduce mode: "
          "all its messages use one communicator");
    }
    return std::make_unique<Reduce>(settings, proto.build_strategy().fuse_broadcast_ops());
  };
  def.when = "if updates take long (lamb, adam with many parameters) and the network is fast";
  def.cost = "parameters are sent as well as gradients, after the updates; no memory is saved";
  def.figure =
      "2 ranks, Gloo: as many bytes on the wire as an allreduce (`scripts/bench.sh "
      "strategy_costs`)";
}

}  // namespace fleet
