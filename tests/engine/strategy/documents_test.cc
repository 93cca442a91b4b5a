// Every name of a strategy that the documents users start from print, typed as printed: in a job
// file's section, by --set, and in a strategy file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kRefused = "not supported yet";

struct Name {
  const char* document;
  const char* typed;
  const char* value;
  const char* path;  // of the field that it is
  // "": it acts; kRefused: an error names it; else what the log says
  const char* line;
};

constexpr const char* kCollective = "collective_training_practice";
constexpr const char* kFusion = "op_fusion";
constexpr const char* kStrategy = "distributed_strategy";
constexpr const char* kSingle = "single_machine_best_practice";

const Name kNames[] = {
    {kCollective, "fuse_all_optimizer_ops", "True", "build_strategy.fuse_all_optimizer_ops", ""},
    {kCollective, "fuse_bn_act_ops", "True", "build_strategy.fuse_bn_act_ops", ""},
    {kCollective, "fuse_elewise_add_act_ops", "True", "build_strategy.fuse_elewise_add_act_ops",
     ""},
    {kCollective, "fuse_grad_size_in_MB", "16", "fuse_grad_size_in_MB", ""},
    {kCollective, "fuse_grad_size_in_TFLOPS", "50", "fuse_grad_size_in_TFLOPS", ""},
    {kCollective, "fuse_all_reduce_ops", "True", "fuse_all_reduce_ops", ""},
    {kCollective, "use_hierarchical_allreduce", "True", "use_hierarchical_allreduce",
     "set hierachical_allreduce=False since you only have 1 node."},
    {kCollective, "hierarchical_allreduce_inter_nranks", "8", "hierarchical_allreduce_inter_nranks",
     "hierarchical_allreduce_inter_nranks has no effect"},
    {kCollective, "sync_nccl_allreduce", "True", "sync_nccl_allreduce", ""},
    {kCollective, "nccl_comm_num", "2", "nccl_comm_num", "set nccl_comm_num=1"},
    {kCollective, "thread_num", "3", "execution_strategy.num_threads", "num_threads is 3"},
    {kCollective, "BuildStrategy.num_iteration_per_drop_scope", "30",
     "execution_strategy.num_iteration_per_drop_scope", "not configurable"},
    {kCollective, "use_dali", "True", "use_dali", "use_dali has no effect"},
    {kCollective, "build_strategy.enable_sequential_execution", "True",
     "build_strategy.enable_sequential_execution", "operations run one by one"},
    {kCollective, "build_strategy.fuse_elewise_add_act_ops", "True",
     "build_strategy.fuse_elewise_add_act_ops", ""},
    {kCollective, "build_strategy.fuse_bn_act_ops", "True", "build_strategy.fuse_bn_act_ops", ""},
    {kCollective, "build_strategy.enable_auto_fusion", "True", "build_strategy.enable_auto_fusion",
     ""},
    {kCollective, "build_strategy.fuse_all_optimizer_ops", "True",
     "build_strategy.fuse_all_optimizer_ops", ""},
    {kCollective, "execution_strategy.num_threads", "3", "execution_strategy.num_threads",
     "num_threads is 3"},
    {kCollective, "execution_strategy.num_iteration_per_drop_scope", "100",
     "execution_strategy.num_iteration_per_drop_scope", "not configurable"},
    {kCollective, "execution_strategy.num_iteration_per_run", "1",
     "execution_strategy.num_iteration_per_run", ""},
    {kCollective, "amp", "True", "amp", ""},
    {kCollective, "amp_configs.init_loss_scaling", "128", "amp_configs.init_loss_scaling",
     "amp_configs has no effect: amp is off"},
    {kCollective, "amp_configs.decr_every_n_nan_or_inf", "3", "amp_configs.decr_every_n_nan_or_inf",
     "amp is off"},
    {kCollective, "amp_configs.incr_every_n_steps", "500", "amp_configs.incr_every_n_steps",
     "amp is off"},
    {kCollective, "amp_configs.incr_ratio", "3.0", "amp_configs.incr_ratio", "amp is off"},
    {kCollective, "amp_configs.use_dynamic_loss_scaling", "False",
     "amp_configs.use_dynamic_loss_scaling", "amp is off"},
    {kCollective, "amp_configs.decr_ratio", "0.5", "amp_configs.decr_ratio", "amp is off"},
    {kCollective, "amp_configs.custom_white_list", "[\"conv2d\"]", "amp_configs.custom_white_list",
     "amp is off"},
    {kCollective, "amp_configs.custom_black_list", "[\"mean\"]", "amp_configs.custom_black_list",
     "amp is off"},
    {kCollective, "auto", "True", "auto", "strategy: auto"},
    {kCollective, "a_sync", "True", "a_sync", "a_sync: setting of parameter servers"},
    {kCollective, "a_sync", "False", "a_sync", "a_sync: setting of parameter servers"},
    {kCollective, "sync_batch_norm", "True", "sync_batch_norm", ""},
    {kCollective, "cudnn_exhaustive_search", "True", "cudnn_exhaustive_search", ""},
    {kCollective, "conv_workspace_size_limit", "4000", "conv_workspace_size_limit", ""},
    {kCollective, "cudnn_batchnorm_spatial_persistent", "True",
     "cudnn_batchnorm_spatial_persistent", "cudnn_batchnorm_spatial_persistent has no effect"},
    {kCollective, "build_strategy.fuse_relu_depthwise_conv", "True",
     "build_strategy.fuse_relu_depthwise_conv", ""},
    {kCollective, "build_strategy.fuse_broadcast_ops", "True", "build_strategy.fuse_broadcast_ops",
     "Currently, fuse_broadcast_ops only works under Reduce mode."},
    {kCollective, "build_strategy.enable_inplace", "False", "build_strategy.enable_inplace",
     "not configurable"},
    {kCollective, "build_strategy.enable_backward_optimizer_op_deps", "False",
     "build_strategy.enable_backward_optimizer_op_deps", "not configurable"},
    {kCollective, "build_strategy.cache_runtime_context", "True",
     "build_strategy.cache_runtime_context", "not configurable"},
    {kCollective, "execution_strategy.use_thread_barrier", "True",
     "execution_strategy.use_thread_barrier", "not configurable"},

    {kFusion, "build_strategy.fuse_relu_depthwise_conv", "True",
     "build_strategy.fuse_relu_depthwise_conv", ""},
    {kFusion, "build_strategy.fuse_broadcast_ops", "True", "build_strategy.fuse_broadcast_ops",
     "Currently, fuse_broadcast_ops only works under Reduce mode."},
    {kFusion, "_fuse_grad_size_in_TFLOPS", "50", "fuse_grad_size_in_TFLOPS", ""},

    {kStrategy, "exe_strategy.num_threads", "10", "execution_strategy.num_threads",
     "num_threads is 10"},
    {kStrategy, "exe_strategy.num_iteration_per_drop_scope", "10",
     "execution_strategy.num_iteration_per_drop_scope", "not configurable"},
    {kStrategy, "exe_strategy.num_iteration_per_run", "10",
     "execution_strategy.num_iteration_per_run", "num_iteration_per_run is 10"},
    {kStrategy, "build_strategy.enable_inplace", "True", "build_strategy.enable_inplace",
     "not configurable"},
    {kStrategy, "recompute", "True", "recompute",
     "recompute is switched off: recompute_configs.checkpoints is empty"},
    {kStrategy, "recompute_configs.checkpoints", "[\"a\"]", "recompute_configs.checkpoints",
     "recompute is off"},
    {kStrategy, "recompute_configs.enable_offload", "True", "recompute_configs.enable_offload",
     "recompute is off"},
    {kStrategy, "recompute_configs.checkpoint_shape", "[100, 512, 1024]",
     "recompute_configs.checkpoint_shape", "recompute is off"},
    {kStrategy, "pipeline", "True", "pipeline", ""},
    {kStrategy, "pipeline_configs.micro_batch", "12", "pipeline_configs.micro_batch",
     "pipeline is off"},
    {kStrategy, "gradient_merge", "True", "gradient_merge",
     "gradient_merge is switched off: gradient_merge_configs.k_steps is 1"},
    {kStrategy, "gradient_merge_configs.k_steps", "4", "gradient_merge_configs.k_steps",
     "gradient_merge is off"},
    {kStrategy, "gradient_merge_configs.avg", "False", "gradient_merge_configs.avg",
     "gradient_merge is off"},
    {kStrategy, "lars", "True", "lars", ""},
    {kStrategy, "lars_configs.lars_coeff", "0.002", "lars_configs.lars_coeff", "lars is off"},
    {kStrategy, "lars_configs.lars_weight_decay", "0.001", "lars_configs.lars_weight_decay",
     "lars is off"},
    {kStrategy, "lars_configs.epsilon", "0.5", "lars_configs.epsilon", "lars is off"},
    {kStrategy, "lars_configs.exclude_from_weight_decay", "[\"batch_norm\", \".b\"]",
     "lars_configs.exclude_from_weight_decay", "lars is off"},
    {kStrategy, "lamb", "True", "lamb", "lamb is switched off: it needs optimizer.name adam"},
    {kStrategy, "lamb_configs.lamb_weight_decay", "0.02", "lamb_configs.lamb_weight_decay",
     "lamb is off"},
    {kStrategy, "lamb_configs.exclude_from_weight_decay", "[\".b\"]",
     "lamb_configs.exclude_from_weight_decay", "lamb is off"},
    {kStrategy, "localsgd", "True", "localsgd", "localsgd is switched off: it needs several ranks"},
    {kStrategy, "localsgd_configs.k_steps", "4", "localsgd_configs.k_steps", "localsgd is off"},
    {kStrategy, "localsgd_configs.begin_step", "30", "localsgd_configs.begin_step",
     "localsgd is off"},
    {kStrategy, "adaptive_localsgd", "True", "adaptive_localsgd",
     "adaptive_localsgd is switched off: it needs several ranks"},
    {kStrategy, "adaptive_localsgd_configs.init_k_steps", "2",
     "adaptive_localsgd_configs.init_k_steps", "adaptive_localsgd is off"},
    {kStrategy, "adaptive_localsgd_configs.begin_step", "30",
     "adaptive_localsgd_configs.begin_step", "adaptive_localsgd is off"},
    {kStrategy, "dgc", "True", "dgc", "dgc is switched off: it needs several ranks"},
    {kStrategy, "dgc_configs.rampup_begin_step", "1252", "dgc_configs.rampup_begin_step",
     "dgc is off"},
    {kStrategy, "dgc_configs.rampup_step", "100", "dgc_configs.rampup_step", "dgc is off"},
    {kStrategy, "dgc_configs.sparsity", "[0.99, 0.999]", "dgc_configs.sparsity", "dgc is off"},
    {kStrategy, "fp16_allreduce", "True", "fp16_allreduce", ""},
    {kStrategy, "sharding", "True", "sharding", "sharding is switched off: it needs several ranks"},
    {kStrategy, "sharding_configs.fuse_broadcast_MB", "16", "sharding_configs.fuse_broadcast_MB",
     "sharding is off"},
    {kStrategy, "sharding_configs.hybrid_dp", "True", "sharding_configs.hybrid_dp",
     "sharding is off"},
    {kStrategy, "sharding_configs.sharding_group_size", "4", "sharding_configs.sharding_group_size",
     "sharding is off"},

    {kSingle, "build_strategy.reduce_strategy", "fluid.BuildStrategy.ReduceStrategy.AllReduce",
     "build_strategy.reduce_strategy", ""},
    {kSingle, "build_strategy.reduce_strategy", "fluid.BuildStrategy.ReduceStrategy.Reduce",
     "build_strategy.reduce_strategy", ""},
    {kSingle, "build_strategy.fuse_all_reduce_ops", "False", "fuse_all_reduce_ops", ""},
    {kSingle, "build_strategy.mkldnn_enabled_op_types", "[\"conv2d\"]",
     "build_strategy.mkldnn_enabled_op_types", "mkldnn_enabled_op_types has no effect"},
    {kSingle, "exec_strategy.num_iteration_per_drop_scope", "100",
     "execution_strategy.num_iteration_per_drop_scope", "not configurable"},
    {kSingle, "exec_strategy.num_threads", "1", "execution_strategy.num_threads", ""},
};

std::string label(const Name& name) {
  return std::string(name.document) + ": " + name.typed + " = " + name.value;
}

// "a.b", "1": "a { b: 1 }"
std::string as_file(const Name& name) {
  const std::vector<std::string> path = split(name.typed, '.');
  if (path.size() == 1) return path[0] + ": " + name.value;
  return path[0] + " { " + path[1] + ": " + name.value + " }";
}

StrategyProto from_tree(ConfigTree tree) {
  canonicalize_strategy_fields("strategy", &tree);
  return strategy_from(
      tree.validate(Schema().section("strategy", strategy_schema())).section("strategy"));
}

StrategyProto as_override(const Name& name) {
  ConfigTree tree;
  tree.set(std::string("strategy.") + name.typed, name.value, "--set");
  return from_tree(tree);
}

// With the texts of a job file: words in quotes.
StrategyProto as_section(const Name& name) {
  const std::string word = name.value;
  const bool quoted =
      std::isalpha(static_cast<unsigned char>(word[0])) && word.find('.') != word.npos;
  const std::string value = quoted ? "\"" + word + "\"" : word;
  return from_tree(ConfigTree::from_json(
      std::string("{\"strategy\": {\"") + name.typed + "\": " + value + "}}", "job.json"));
}

TEST(Documents, EachName_IsItsFieldInEveryForm) {
  for (const Name& name : kNames) {
    SCOPED_TRACE(label(name));
    const StrategyProto file = strategy_proto(as_file(name));
    EXPECT_THAT(given_fields(file, {name.path}), Contains(name.path));
    EXPECT_EQ(as_override(name).ShortDebugString(), file.ShortDebugString());
    EXPECT_EQ(as_section(name).ShortDebugString(), file.ShortDebugString());
  }
}

TEST(Documents, EachName_ActsOrSaysWhyNot) {
  for (const Name& name : kNames) {
    SCOPED_TRACE(label(name));
    std::string refusal;
    const std::string log = captured_log([&] {
      spdlog::default_logger()->set_level(spdlog::level::debug);
      try {
        make_strategy(as_file(name));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
        refusal = error.what();
      }
    });
    if (name.line == kRefused) {
      EXPECT_THAT(refusal, HasSubstr(std::string(kRefused) + ": " + name.path));
    } else {
      EXPECT_EQ(refusal, "");
      EXPECT_THAT(log, HasSubstr(name.line));
    }
  }
}

TEST(Documents, WhatIsRefused_PassesWhereItIsOff) {
  for (const Name& name : kNames) {
    if (name.line != kRefused || std::string(name.value) != "True") continue;
    Name off = name;
    off.value = "False";
    EXPECT_NO_THROW(make_strategy(as_file(off))) << label(off);
  }
}

TEST(Documents, WhatIsAlwaysSo_IsSaidInOneLine) {
  const std::string log = captured_log([] {
    make_strategy(
        "build_strategy { enable_inplace: false cache_runtime_context: true } "
        "execution_strategy { num_iteration_per_drop_scope: 100 }");
  });
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("build_strategy.enable_inplace, build_strategy.cache_runtime_context, "
                             "execution_strategy.num_iteration_per_drop_scope"));
}

TEST(Documents, AutomaticThreads_NeedNoLine) {
  EXPECT_EQ(captured_log([] { make_strategy("execution_strategy { num_threads: 0 }"); }), "");
}

}  // namespace
}  // namespace fleet
