// What a DistributedStrategy asks for, checked, and its application to a Program.
#pragma once

#include <string>

#include "passes/backward.h"
#include "passes/buckets.h"
#include "passes/pass.h"
#include "strategy/amp.h"

namespace fleet {

// The part of a strategy that is supported. Where the user left one of the build strategy's fusions
// unset, fleetrun fuses (Paddle does not): unset and false are different things.
struct Strategy {
  bool fuse_all_reduce = true;         // fuse_all_reduce_ops
  BucketLimits buckets;                // fuse_grad_size_in_MB, _in_TFLOPS (a count), _in_num
  bool fuse_bn_act = true;             // build_strategy.fuse_bn_act_ops
  bool fuse_elewise_add_act = true;    // build_strategy.fuse_elewise_add_act_ops
  bool fuse_bn_add_act = true;         // build_strategy.fuse_bn_add_act_ops
  bool auto_fusion = true;             // build_strategy.enable_auto_fusion: gradients' sums
  bool fuse_all_optimizer_ops = true;  // build_strategy.fuse_all_optimizer_ops
  AmpStrategy amp;                     // amp, amp_configs
  bool fp16_allreduce = false;
  std::string graphviz_path;  // build_strategy.debug_graphviz_path
};

// Checks fields and what does not go together; says what was switched off, and why.
// kUnsupported naming every field that differs from its default and does nothing yet. The
// configuration of a feature that is off (localsgd_configs without localsgd) has no effect, as in
// Paddle; a line says so.
Strategy check_strategy(const StrategyProto& proto);

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
