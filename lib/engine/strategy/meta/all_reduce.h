// The summation of gradients over the data-parallel ranks: on all of them (fuse_all_reduce_ops, its
// limits, and the communicators that allreduces use in turn), or on each parameter's owner.
#pragma once

#include "passes/gradients.h"
#include "passes/pass.h"
#include "strategy/strategy_file.h"

namespace fleet {

struct AllReduceSettings {
  bool fuse = true;  // fuse_all_reduce_ops
  // fuse_grad_size_in_MB, _in_TFLOPS (a count), _in_num, last_comm_group_size_MB
  BucketLimits buckets;
  int communicators = 1;  // nccl_comm_num: number that allreduces use in turn
  bool one_after_another =
      true;            // sync_nccl_allreduce: each allreduce starts when the previous one has ended
  int group_size = 1;  // > 1: use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks
};

inline constexpr int kReduceMode = 1;  // build_strategy.reduce_strategy

// Whether the strategy requests Reduce mode and the job has several ranks: each gradient is then
// summed on its parameter's owner (reduce.cc), not on all ranks.
bool reduces_to_owners(const StrategyProto& proto, const PassContext& context);

// Switches off settings that make no sense in this job (groups on one node), and logs a line in
// Paddle's words. kUsage for invalid values.
AllReduceSettings check_all_reduce(const StrategyProto& proto, const PassContext& context);

}  // namespace fleet
