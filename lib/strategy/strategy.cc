#include "strategy/strategy.h"

#include <google/protobuf/text_format.h>

#include <set>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

namespace fleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// What Strategy takes over.
const std::set<std::string> kSupported = {
    "fuse_all_reduce_ops",
    "fuse_grad_size_in_MB",
    "fuse_grad_size_in_TFLOPS",
    "fuse_grad_size_in_num",
    "last_comm_group_size_MB",
    "sync_nccl_allreduce",
    "nccl_comm_num",
    "use_hierarchical_allreduce",
    "hierarchical_allreduce_inter_nranks",
    "build_strategy.fuse_bn_act_ops",
    "build_strategy.fuse_elewise_add_act_ops",
    "build_strategy.fuse_bn_add_act_ops",
    "build_strategy.enable_auto_fusion",
    "build_strategy.fuse_all_optimizer_ops",
    "build_strategy.fuse_resunit",
    "amp",
    "amp_configs.init_loss_scaling",
    "amp_configs.incr_every_n_steps",
    "amp_configs.decr_every_n_nan_or_inf",
    "amp_configs.incr_ratio",
    "amp_configs.decr_ratio",
    "amp_configs.use_dynamic_loss_scaling",
    "amp_configs.custom_white_list",
    "amp_configs.custom_black_list",
    "amp_configs.custom_black_varnames",
    "amp_configs.use_pure_fp16",
    "amp_configs.use_fp16_guard",
    "amp_configs.use_pure_bf16",
    "amp_configs.dtype",
    "fp16_allreduce",
    "build_strategy.debug_graphviz_path",
    "cudnn_exhaustive_search",  // these two: DeviceOptions
    "conv_workspace_size_limit",
    "cudnn_batchnorm_spatial_persistent",  // taken, and said to have no effect
};

// What is so whatever they say: operations run in the program's order, and the Plan lets outputs
// take their inputs' memory wherever that is safe.
const std::set<std::string> kAlwaysSo = {
    "build_strategy.enable_sequential_execution",
    "build_strategy.enable_inplace",
};

std::string value_text(const Message& message, const FieldDescriptor& field) {
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

bool is_default(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) return message.GetReflection()->FieldSize(message, &field) == 0;
  if (!message.GetReflection()->HasField(message, &field)) return true;
  std::unique_ptr<Message> blank(message.New());
  return value_text(message, field) == value_text(*blank, field);
}

// Whether this is the configuration of a feature that is there to be switched on, and is off.
bool is_switched_off(const Message& message, const FieldDescriptor& field) {
  const std::string suffix = "_configs", &name = field.name();
  if (!name.ends_with(suffix)) return false;
  const FieldDescriptor* feature =
      message.GetDescriptor()->FindFieldByName(name.substr(0, name.size() - suffix.size()));
  return feature && feature->cpp_type() == FieldDescriptor::CPPTYPE_BOOL &&
         !message.GetReflection()->GetBool(message, feature);
}

void find_unsupported(const Message& message, const std::string& prefix,
                      std::vector<std::string>* found) {
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    if (!field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Reflection& reflection = *message.GetReflection();
      if (!reflection.HasField(message, &field)) continue;
      if (is_switched_off(message, field)) {
        spdlog::warn("strategy: {} has no effect: {} is off", path,
                     path.substr(0, path.rfind("_configs")));
        continue;
      }
      find_unsupported(reflection.GetMessage(message, &field), path + ".", found);
    } else if (!kSupported.contains(path) && !kAlwaysSo.contains(path) &&
               !is_default(message, field)) {
      found->push_back(path);
    }
  }
}

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "strategy", next);
}

BucketLimits bucket_limits(const StrategyProto& proto) {
  BucketLimits limits;
  limits.megabytes = proto.fuse_grad_size_in_mb();
  limits.count = static_cast<int64_t>(proto.fuse_grad_size_in_tflops());
  if (proto.has_last_comm_group_size_mb()) limits.last_megabytes = proto.last_comm_group_size_mb();
  if (!proto.has_fuse_grad_size_in_num()) return limits;
  if (proto.fuse_grad_size_in_num() < 1) {
    refuse("fuse_grad_size_in_num is " + std::to_string(proto.fuse_grad_size_in_num()),
           "give a number from 1 up, or leave it out");
  }
  if (proto.has_fuse_grad_size_in_mb() || proto.has_fuse_grad_size_in_tflops() ||
      proto.has_last_comm_group_size_mb()) {
    refuse(
        "fuse_grad_size_in_num does not go with fuse_grad_size_in_MB, fuse_grad_size_in_TFLOPS and "
        "last_comm_group_size_MB",
        "give the one or the others");
  }
  limits.exact_count = proto.fuse_grad_size_in_num();
  return limits;
}

// The size of the groups in which gradients are summed first; 1: none.
int group_size(const StrategyProto& proto, const PassContext& context) {
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
  if (size <= 1 || size >= context.world_size || context.world_size % size != 0) {
    refuse("hierarchical_allreduce_inter_nranks is " + std::to_string(size) + ", with " +
               std::to_string(context.world_size) + " ranks",
           "give the number of ranks of a group, such as a node's: more than 1, and a divisor of "
           "the number of ranks below it");
  }
  return size;
}

Communication communication(const StrategyProto& proto, const PassContext& context) {
  Communication result{.communicators = proto.nccl_comm_num(),
                       .one_after_another = proto.sync_nccl_allreduce(),
                       .group_size = group_size(proto, context)};
  if (result.communicators < 1) {
    refuse("nccl_comm_num is " + std::to_string(result.communicators), "give a number from 1 up");
  }
  if (result.communicators > 1 && context.world_size <= 1) {
    spdlog::warn("set nccl_comm_num=1 since you only have 1 node.");
    result.communicators = 1;
  }
  if (result.communicators > 1 && result.one_after_another) {
    spdlog::warn(
        "nccl_comm_num > 1, you may need to set sync_nccl_allreduce=False to ensure that different "
        "nccl comms can overlap");
  }
  return result;
}

bool or_on(bool given, bool value) { return !given || value; }

// Paddle's rules for strategies that do not go together (the first in alphabetical order wins where
// neither can wrap the other), but not in silence.
void resolve_conflicts(Strategy* strategy) {
  if (strategy->amp.on && strategy->fp16_allreduce) {
    spdlog::warn(
        "strategy: fp16_allreduce is switched off: it does not go with amp, under which gradients "
        "of low operations are reduced in the low type anyway");
    strategy->fp16_allreduce = false;
  }
}

// Whether convolutions shall take in the batch normalisations around them, which only cuDNN can, in
// float16.
bool fuses_resunit(const Strategy& strategy, std::optional<DType> low, const PassContext& context) {
  if (!strategy.fuse_resunit) return false;
  if (context.backend == "cuda" && low == DType::kFloat16) return true;
  spdlog::warn(
      "strategy: build_strategy.fuse_resunit has no effect: it is for convolutions in float16 on a "
      "GPU, and this job computes in {} on {}",
      name_of(low.value_or(DType::kFloat32)), context.backend);
  return false;
}

}  // namespace

Strategy check_strategy(const StrategyProto& proto, const PassContext& context) {
  std::vector<std::string> unsupported;
  find_unsupported(proto, "", &unsupported);
  if (!unsupported.empty()) {
    throw Error(ErrorCode::kUnsupported, "not supported yet: " + join(unsupported, ", "),
                "strategy", "leave out what is named, or leave it at its default");
  }
  Strategy strategy;
  strategy.fuse_all_reduce = proto.fuse_all_reduce_ops();
  strategy.buckets = bucket_limits(proto);
  strategy.communication = communication(proto, context);
  const paddle::fleet::BuildStrategy& build = proto.build_strategy();
  strategy.fuse_bn_act = or_on(build.has_fuse_bn_act_ops(), build.fuse_bn_act_ops());
  strategy.fuse_elewise_add_act =
      or_on(build.has_fuse_elewise_add_act_ops(), build.fuse_elewise_add_act_ops());
  strategy.fuse_bn_add_act = build.fuse_bn_add_act_ops();
  strategy.auto_fusion = or_on(build.has_enable_auto_fusion(), build.enable_auto_fusion());
  strategy.fuse_all_optimizer_ops =
      or_on(build.has_fuse_all_optimizer_ops(), build.fuse_all_optimizer_ops());
  strategy.fuse_resunit = build.fuse_resunit();
  if (proto.cudnn_batchnorm_spatial_persistent()) {
    spdlog::warn(
        "strategy: cudnn_batchnorm_spatial_persistent has no effect: batch normalisation runs in "
        "fleetrun's own kernels, not in cuDNN's");
  }
  strategy.amp = check_amp(proto);
  strategy.fp16_allreduce = proto.fp16_allreduce();
  resolve_conflicts(&strategy);
  strategy.graphviz_path = build.debug_graphviz_path();
  return strategy;
}

BackwardResult apply_strategy(Program& program, const Strategy& strategy, SectionId forward,
                              VarId loss, const PassContext& context) {
  FLEET_CHECK(context.world_size >= 1, "a job of no ranks");
  const std::optional<DType> low = choose_low_type(strategy.amp, context);
  if (low) apply_amp(program, strategy.amp, *low, context);
  if (program.var(loss).dtype != DType::kFloat32) {
    throw Error(ErrorCode::kUsage,
                "the loss would be " + std::string(name_of(program.var(loss).dtype)),
                "strategy amp_configs.custom_white_list", "take mean off it");
  }
  if (strategy.fuse_bn_act) run_pass("fuse_bn_act", program, context);
  if (strategy.fuse_elewise_add_act) run_pass("fuse_elewise_add_act", program, context);
  if (strategy.fuse_bn_add_act) run_pass("fuse_bn_add_act", program, context);
  const BackwardResult result = append_backward(program, forward, loss, 1.0 / context.world_size,
                                                make_loss_scaling(program, strategy.amp, low));
  if (strategy.auto_fusion) run_pass("fuse_gradient_sums", program, context);
  if (fuses_resunit(strategy, low, context)) run_pass("fuse_resunit", program, context);
  if (low) run_pass("amp_parameters", program, context);
  if (strategy.fp16_allreduce) run_pass("fp16_allreduce", program, context);
  run_pass("fuse_all_reduce", program, context,
           {{"fuse", strategy.fuse_all_reduce},
            {"megabytes", strategy.buckets.megabytes},
            {"count", strategy.buckets.count},
            {"exact_count", strategy.buckets.exact_count},
            {"last_megabytes", strategy.buckets.last_megabytes},
            {"communicators", int64_t{strategy.communication.communicators}},
            {"one_after_another", strategy.communication.one_after_another}});
  verify(program);
  if (!strategy.graphviz_path.empty()) {
    write_file_atomically(strategy.graphviz_path, print_dot(program));
  }
  return result;
}

void append_optimizer(Program& program, const Strategy& strategy, const BackwardResult& backward,
                      VarId learning_rate, const Settings& settings, const PassContext& context) {
  const SectionId optimize = program.add_section("optimize", {});
  const GradientScaling scaling = append_loss_scaling(program, optimize, strategy.amp, backward);
  append_updates(program, optimize, backward.parameters, learning_rate, settings, scaling);
  if (strategy.fuse_all_optimizer_ops) run_pass("fuse_all_optimizer_ops", program, context);
  verify(program);
}

}  // namespace fleet
