#include "strategy/meta/all_reduce.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"
#include "strategy/names.h"

namespace fleet {
namespace {

[[noreturn]] void refuse_all_reduce(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "strategy", next);
}

BucketLimits bucket_limits(const StrategyProto& proto) {
  BucketLimits limits;
  limits.megabytes = proto.fuse_grad_size_in_mb();
  limits.count = static_cast<int64_t>(proto.fuse_grad_size_in_tflops());
  if (proto.has_last_comm_group_size_mb()) limits.last_megabytes = proto.last_comm_group_size_mb();
  if (!proto.has_fuse_grad_size_in_num()) return limits;
  if (proto.fuse_grad_size_in_num() < 1) {
    refuse_all_reduce("fuse_grad_size_in_num is " + std::to_string(proto.fuse_grad_size_in_num()),
                      "set it to 1 or more, or remove it");
  }
  const StrategyProto defaults;
  const bool others = proto.has_fuse_grad_size_in_mb() || proto.has_fuse_grad_size_in_tflops() ||
                      proto.has_last_comm_group_size_mb();
  const bool others_differ =
      proto.fuse_grad_size_in_mb() != defaults.fuse_grad_size_in_mb() ||
      proto.fuse_grad_size_in_tflops() != defaults.fuse_grad_size_in_tflops() ||
      proto.last_comm_group_size_mb() != defaults.last_comm_group_size_mb();
  // A file that Paddle wrote contains all of them, at their defaults if nothing else was set.
  if (others && proto.fuse_grad_size_in_num() == defaults.fuse_grad_size_in_num()) {
    if (limits.last_megabytes == defaults.last_comm_group_size_mb()) limits.last_megabytes = 0;
    return limits;
  }
  if (others_differ) {
    refuse_all_reduce(
        "fuse_grad_size_in_num cannot be combined with fuse_grad_size_in_MB, "
        "fuse_grad_size_in_TFLOPS and last_comm_group_size_MB",
        "set only one or the others");
  }
  limits.last_megabytes = 0;
  limits.exact_count = proto.fuse_grad_size_in_num();
  return limits;
}

// The size of the groups in which gradients are summed first; 1: no groups.
int group_size(const StrategyProto& proto, const PassContext& context) {
  const int degree = context.data_parallel_degree();
  const int size = proto.hierarchical_allreduce_inter_nranks();
  if (!proto.use_hierarchical_allreduce()) {
    if (size != 1) {
      spdlog::warn(
          "strategy: hierarchical_allreduce_inter_nranks has no effect: use_hierarchical_allreduce "
          "is off");
    }
    return 1;
  }
  if (context.nodes <= 1) {
    spdlog::warn("set hierachical_allreduce=False since you only have 1 node.");
    return 1;
  }
  if (degree <= 1) {
    spdlog::warn("strategy: use_hierarchical_allreduce has no effect: gradients are not exchanged");
    return 1;
  }
  if (size <= 1 || size >= degree || degree % size != 0) {
    refuse_all_reduce(
        "hierarchical_allreduce_inter_nranks is " + std::to_string(size) + ", with " +
            std::to_string(degree) + " ranks",
        "set it to the number of ranks of a group, such as a node's: more than 1, and a divisor of "
        "the number of ranks below it");
  }
  return size;
}

class AllReduce : public MetaOptimizer {
 public:
  // given: fields that the user set to values other than their defaults
  AllReduce(const AllReduceSettings& settings, std::vector<std::string> given)
      : settings_(settings), given_(std::move(given)) {}

  void communication(BuildContext& build) override {
    if (build.sums_on_owners) return;
    if (!build.sums_gradients) {
      if (!given_.empty()) {
        spdlog::warn("strategy: no effect, because ranks exchange no gradients: {}",
                     join(given_, ", "));
      }
      return;
    }
    std::map<SectionId, std::vector<std::string>> in_section;
    std::vector<std::string> apart;
    for (const auto& [parameter, section] : build.updated_separately) {
      apart.push_back(build.program.var(parameter).name);
      if (section >= 0) in_section[section].push_back(apart.back());
    }
    sum(build, build.sums_in, {{"without", apart}});
    for (const auto& [section, names] : in_section) sum(build, section, {{"only", names}});
  }

  // Sums of gradients are the same on all ranks, but the check also sees a rank's own loss.
  void update(BuildContext& build) override {
    const bool sums = build.sums_gradients && !build.sums_on_owners;
    if (!build.skips_updates || !sums || build.context.data_parallel_degree() <= 1) return;
    const GroupId group = build.program.add_group(
        {.name = "data parallel", .ranks = build.context.data_parallel_ranks()});
    const VarId found = build.scaling.found_inf;
    build.program
        .append(build.optimize, "all_reduce", {found}, {found},
                {{"op", std::string("max")}, {"communicator", int64_t{group}}})
        .stream = kCommunicationStream;
  }

 private:
  void sum(BuildContext& build, SectionId section, Attributes options) const {
    const BucketLimits& limits = settings_.buckets;
    options.set("fuse", settings_.fuse);
    options.set("megabytes", limits.megabytes);
    options.set("count", limits.count);
    options.set("exact_count", limits.exact_count);
    options.set("last_megabytes", limits.last_megabytes);
    options.set("communicators", int64_t{settings_.communicators});
    options.set("inner_group_size", int64_t{settings_.group_size});
    options.set("one_after_another", settings_.one_after_another);
    if (section >= 0) options.set("section", build.program.sections()[section].name);
    run_pass("fuse_all_reduce", build.program, build.context, std::move(options));
  }

  const AllReduceSettings settings_;
  const std::vector<std::string> given_;
};

}  // namespace

bool reduces_to_owners(const StrategyProto& proto, const PassContext& context) {
  return proto.build_strategy().reduce_strategy() == kReduceMode &&
         context.data_parallel_degree() > 1;
}

AllReduceSettings check_all_reduce(const StrategyProto& proto, const PassContext& context) {
  AllReduceSettings settings{.fuse = proto.fuse_all_reduce_ops(),
                             .buckets = bucket_limits(proto),
                             .communicators = proto.nccl_comm_num(),
                             .one_after_another = proto.sync_nccl_allreduce()};
  if (proto.sync_batch_norm() && context.data_parallel_degree() > 1) {
    settings.communicators = std::min(settings.communicators, 1);  // like Paddle, which logs it
  } else {
    settings.group_size = group_size(proto, context);
  }
  if (settings.communicators > 1 && context.data_parallel_degree() <= 1) {
    spdlog::warn("set nccl_comm_num=1 since you only have 1 node.");
    settings.communicators = 1;
  }
  if (settings.communicators > 1 && settings.one_after_another) {
    spdlog::warn(
        "nccl_comm_num > 1, you may need to set sync_nccl_allreduce=False to ensure that different "
        "nccl comms can overlap");
  }
  return settings;
}

FLEET_META_OPTIMIZER(all_reduce) {
  def.help = "gradients are summed over the ranks, several per allreduce";
  def.position = 350;
  def.fields = {
      "fuse_all_reduce_ops",   "fuse_grad_size_in_MB",       "fuse_grad_size_in_TFLOPS",
      "fuse_grad_size_in_num", "last_comm_group_size_MB",    "sync_nccl_allreduce",
      "nccl_comm_num",         "use_hierarchical_allreduce", "hierarchical_allreduce_inter_nranks"};
  def.create = [fields = def.fields](const StrategyProto& proto,
                                     const PassContext& context) -> std::unique_ptr<MetaOptimizer> {
    if (reduces_to_owners(proto, context)) return nullptr;
    const AllReduceSettings settings = check_all_reduce(proto, context);
    if (!settings.one_after_another && settings.communicators == 1 &&
        context.data_parallel_degree() > 1) {
      spdlog::info(
          "strategy: sync_nccl_allreduce has no effect with one communicator (nccl_comm_num): its "
          "allreduces follow one another anyway");
    }
    std::vector<std::string> given = given_fields(proto, fields);
    std::erase_if(given, [&](const auto& path) { return is_default(proto, *find_field(path)); });
    return std::make_unique<AllReduce>(settings, std::move(given));
  };
  def.when =
      "always with several ranks: smaller groups are sent earlier, larger ones use the "
      "network better; a tenth of all gradients is a good start";
  def.cost = "the last group cannot overlap with the backward pass; each communicator has buffers";
  def.figure =
      "ResNet50's 161 gradients are sent in 6 groups with 16 MiB and 50, in 5 with 32 MiB "
      "(`fleet-worker --print_program`); hierarchical sums of 25 MB over 2 hosts x 4 ranks take "
      "0.63 of a flat ring's time (docs/performance/communication.md)";
}

}  // namespace fleet
