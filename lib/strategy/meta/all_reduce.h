// How gradients are summed over the data-parallel ranks: fuse_all_reduce_ops, its limits, and the
// communicators that the sums take turns on.
#pragma once

#include "passes/buckets.h"
#include "passes/pass.h"
#include "strategy/strategy_file.h"

namespace fleet {

struct AllReduceSettings {
  bool fuse = true;  // fuse_all_reduce_ops
  // fuse_grad_size_in_MB, _in_TFLOPS (a count), _in_num, last_comm_group_size_MB
  BucketLimits buckets;
  int communicators = 1;          // nccl_comm_num: allreduces take turns on so many
  bool one_after_another = true;  // sync_nccl_allreduce: each starts when the one before has ended
  int group_size = 1;  // > 1: use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks
};

// What makes no sense in this job (groups on one node) is switched off, and a line says so in
// Paddle's words. kUsage for values that cannot be.
AllReduceSettings check_all_reduce(const StrategyProto& proto, const PassContext& context);

}  // namespace fleet
