// What a DistributedStrategy asks for, checked, and its application to a Program.
#pragma once

#include <string>

#include "passes/backward.h"
#include "passes/buckets.h"
#include "passes/pass.h"
#include "strategy/amp.h"

namespace fleet {

// How the sums of gradients travel.
struct Communication {
  int communicators = 1;          // nccl_comm_num: allreduces take turns on so many
  bool one_after_another = true;  // sync_nccl_allreduce: each starts when the one before has ended
  int group_size = 1;  // > 1: use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks
};

// The part of a strategy that is supported. Where the user left one of the build strategy's fusions
// unset, fleetrun fuses (Paddle does not): unset and false are different things.
struct Strategy {
  bool fuse_all_reduce = true;  // fuse_all_reduce_ops
  // fuse_grad_size_in_MB, _in_TFLOPS (a count), _in_num, last_comm_group_size_MB
  BucketLimits buckets;
  Communication communication;
  bool fuse_bn_act = true;             // build_strategy.fuse_bn_act_ops
  bool fuse_elewise_add_act = true;    // build_strategy.fuse_elewise_add_act_ops
  bool fuse_bn_add_act = true;         // build_strategy.fuse_bn_add_act_ops
  bool auto_fusion = true;             // build_strategy.enable_auto_fusion: gradients' sums
  bool fuse_all_optimizer_ops = true;  // build_strategy.fuse_all_optimizer_ops
  bool fuse_resunit = false;           // build_strategy.fuse_resunit: float16 on a GPU only
  AmpStrategy amp;                     // amp, amp_configs
  bool fp16_allreduce = false;
  std::string graphviz_path;  // build_strategy.debug_graphviz_path
};

// Checks fields and what does not go together; says what was switched off, and why.
// kUnsupported naming every field that differs from its default and does nothing yet. The
// configuration of a feature that is off (localsgd_configs without localsgd) has no effect, as in
// Paddle; a line says so. context: the job the strategy is for; what makes no sense in it (groups
// on one node) is switched off, and a line says so in Paddle's words.
Strategy check_strategy(const StrategyProto& proto, const PassContext& context = {});

// Rewrites the program: mixed precision and fusions of the forward sections, backward from `loss`,
// fusions of the backward section, allreduces. The loss is scaled by 1 / world_size, so that sums
// of gradients over the ranks are means. append_optimizer() comes behind it.
BackwardResult apply_strategy(Program& program, const Strategy& strategy, SectionId forward,
                              VarId loss, const PassContext& context);

// Appends section "optimize": checks of scaled gradients, clipping and updates (append_updates() in
// optim/optimizer.h says what learning_rate and settings are).
void append_optimizer(Program& program, const Strategy& strategy, const BackwardResult& backward,
                      VarId learning_rate, const Settings& settings, const PassContext& context);

}  // namespace fleet
