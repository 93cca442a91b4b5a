// Options of Paddle that are accepted and change nothing here: a log line names those that are set.
#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// These fields have no effect, true or false.
FLEET_META_OPTIMIZER(always_so) {
  def.help = "fixed properties of every Program; the fields do not change them";
  def.fields = {"build_strategy.enable_inplace",
                "build_strategy.enable_backward_optimizer_op_deps",
                "build_strategy.cache_runtime_context",
                "build_strategy.enable_addto",
                "build_strategy.fix_op_run_order",
                "build_strategy.allow_cuda_graph_capture",
                "execution_strategy.num_iteration_per_drop_scope"};
  def.check = [fields = def.fields](const StrategyProto& proto, const PassContext&) {
    const std::vector<std::string> given = given_fields(proto, fields);
    if (given.empty()) return;
    spdlog::info(
        "strategy: {}: not configurable: the order of operations is the Plan's, the updates after "
        "the whole backward pass; results reuse their inputs' memory wherever that is safe; memory "
        "and schedules are planned once, before the first step, and a GPU's step is launched as "
        "one graph (train.cuda_graph)",
        join(given, ", "));
  };
  def.when =
      "never: the options exist for scripts that set them; a log line names those that are set";
  def.cost = "nothing";
}

FLEET_META_OPTIMIZER(mkldnn_enabled_op_types) {
  def.help = "operations that may use oneDNN on the CPU: no effect";
  def.fields = {"build_strategy.mkldnn_enabled_op_types"};
  def.requested = [](const StrategyProto& proto) {
    return proto.build_strategy().mkldnn_enabled_op_types_size() > 0;
  };
  def.check = [](const StrategyProto&, const PassContext&) {
    spdlog::info(
        "strategy: mkldnn_enabled_op_types has no effect: each operation has one kernel on the "
        "CPU, oneDNN's if that is the faster one");
  };
  def.when = "never: the option exists for scripts of Paddle 1";
  def.cost = "nothing";
}

FLEET_META_OPTIMIZER(fuse_resunit) {
  def.help = "convolutions absorb the batch normalizations around them, in cuDNN: no effect";
  def.fields = {"build_strategy.fuse_resunit"};
  def.requested = [](const StrategyProto& proto) { return proto.build_strategy().fuse_resunit(); };
  def.check = [](const StrategyProto&, const PassContext&) {
    spdlog::info(
        "strategy: build_strategy.fuse_resunit has no effect: cuDNN's fused convolutions made a "
        "step of ResNet50 on an H200 slower (0.96 times the speed); fuse_bn_act_ops and "
        "fuse_bn_add_act_ops fuse batch normalizations");
  };
  def.when = "never: the option exists for scripts of Paddle";
  def.cost = "nothing";
}

FLEET_META_OPTIMIZER(use_dali) {
  def.help = "read images with DALI: no effect";
  def.fields = {"use_dali"};
  def.requested = [](const StrategyProto& proto) { return proto.use_dali(); };
  def.check = [](const StrategyProto&, const PassContext&) {
    spdlog::info(
        "strategy: use_dali has no effect: host threads (data.threads) decode and augment "
        "ahead of the training step, and a GPU receives bytes");
  };
  def.when = "never: the option exists for the data loaders of Paddle's documentation";
  def.cost = "nothing";
}

}  // namespace fleet
