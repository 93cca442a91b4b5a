#include "strategy/meta/amp.h"

#include <algorithm>
#include <map>

#include "base/log.h"

namespace fleet {
namespace {

using paddle::fleet::AMPConfig;

[[noreturn]] void refuse_amp(const std::string& what, const std::string& next,
                             ErrorCode code = ErrorCode::kUsage) {
  throw Error(code, what, "strategy amp_configs", next);
}

// Translates Paddle's operation names that differ from ours.
std::vector<std::string> own_names(const google::protobuf::RepeatedPtrField<std::string>& names) {
  static const std::map<std::string, std::string> kOwn = {
      {"mul", "fc"},           {"matmul_v2", "matmul"},
      {"reshape2", "reshape"}, {"transpose2", "transpose"},
      {"flatten2", "flatten"}, {"flatten_contiguous_range", "flatten"},
  };
  std::vector<std::string> own;
  for (const std::string& name : names) {
    const auto found = kOwn.find(name);
    own.push_back(found == kOwn.end() ? name : found->second);
    op_registry().get(own.back());  // kUsage naming the nearest known name
  }
  return own;
}

void check_scaling(const AMPConfig& configs) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) refuse_amp(what, "use a value in that range");
  };
  require(configs.init_loss_scaling() > 0, "init_loss_scaling must be above 0");
  require(configs.incr_every_n_steps() >= 1, "incr_every_n_steps must be 1 or more");
  require(configs.decr_every_n_nan_or_inf() >= 1, "decr_every_n_nan_or_inf must be 1 or more");
  require(configs.incr_ratio() > 1, "incr_ratio must be above 1");
  require(configs.decr_ratio() > 0 && configs.decr_ratio() < 1,
          "decr_ratio must be between 0 and 1");
}

std::optional<DType> wanted_type(const AMPConfig& configs) {
  std::optional<DType> wanted;
  if (configs.dtype() == "float16") wanted = DType::kFloat16;
  if (configs.dtype() == "bfloat16") wanted = DType::kBFloat16;
  if (!wanted && configs.dtype() != "auto") {
    refuse_amp("dtype is '" + configs.dtype() + "'", "set it to auto, float16 or bfloat16");
  }
  if (configs.use_pure_fp16() && configs.use_pure_bf16()) {
    refuse_amp("use_pure_fp16 and use_pure_bf16 are both set", "remove one of them");
  }
  for (const auto& [pure, dtype] : {std::pair(configs.use_pure_fp16(), DType::kFloat16),
                                    std::pair(configs.use_pure_bf16(), DType::kBFloat16)}) {
    if (!pure) continue;
    if (wanted && *wanted != dtype) {
      refuse_amp("dtype " + configs.dtype() + " cannot be combined with pure " + name_of(dtype),
                 "remove dtype");
    }
    wanted = dtype;
  }
  return wanted;
}

}  // namespace

AmpStrategy check_amp(const StrategyProto& proto) {
  const AMPConfig& configs = proto.amp_configs();
  AmpStrategy amp;
  amp.wanted = wanted_type(configs);
  amp.pure = configs.use_pure_fp16() || configs.use_pure_bf16();
  if (amp.pure && configs.has_use_fp16_guard() && configs.use_fp16_guard()) {
    refuse_amp("use_fp16_guard: no network here marks parts with fp16_guard",
               "remove it, or set it to false: the whole network runs in the low type",
               ErrorCode::kUnsupported);
  }
  if (configs.has_use_fp16_guard()) {
    spdlog::info(
        "amp: use_fp16_guard has no effect: no network here marks parts with it, the whole network "
        "computes in the low type");
  }
  amp.white_list = own_names(configs.custom_white_list());
  amp.black_list = own_names(configs.custom_black_list());
  amp.black_variables.assign(configs.custom_black_varnames().begin(),
                             configs.custom_black_varnames().end());
  check_scaling(configs);
  amp.scaling = {.initial = configs.init_loss_scaling(),
                 .dynamic = configs.use_dynamic_loss_scaling(),
                 .incr_every_n_steps = configs.incr_every_n_steps(),
                 .decr_every_n_nan_or_inf = configs.decr_every_n_nan_or_inf(),
                 .incr_ratio = configs.incr_ratio(),
                 .decr_ratio = configs.decr_ratio()};
  amp.scaling_given = configs.has_init_loss_scaling() || configs.has_incr_every_n_steps() ||
                      configs.has_decr_every_n_nan_or_inf() || configs.has_incr_ratio() ||
                      configs.has_decr_ratio() || configs.has_use_dynamic_loss_scaling();
  return amp;
}

DType choose_low_type(const AmpStrategy& amp, const PassContext& context) {
  const std::vector<DType>& offered = context.low_types;
  FLEET_CHECK(!offered.empty(), "amp without a low type");
  DType low = offered.front();
  if (amp.wanted) {
    if (std::find(offered.begin(), offered.end(), *amp.wanted) != offered.end()) {
      low = *amp.wanted;
    } else {
      spdlog::warn("amp: {} instead of {}, which this device does not support", name_of(low),
                   name_of(*amp.wanted));
    }
  }
  if (low == DType::kBFloat16 && amp.scaling_given) {
    spdlog::info("amp: bfloat16 needs no loss scaling: its settings have no effect");
  }
  return low;
}

namespace {

// Parameters in bfloat16 are read as they are.
void check_weights(const AmpStrategy& amp, const PassContext& context) {
  if (context.weights == DType::kFloat32) return;
  const DType low = choose_low_type(amp, context);
  if (context.weights == low) return;
  throw Error(
      ErrorCode::kUsage,
      std::string(name_of(context.weights)) + " cannot be combined with amp in " + name_of(low),
      "train.weights_dtype", "set it to float32, or amp_configs.dtype to bfloat16");
}

class Amp : public MetaOptimizer {
 public:
  explicit Amp(AmpStrategy amp) : amp_(std::move(amp)) {}

  void forward(BuildContext& build) override {
    build.low = choose_low_type(amp_, build.context);
    run_pass("amp", build.program, build.context,
             {{"low", std::string(name_of(*build.low))},
              {"pure", amp_.pure},
              {"white_list", amp_.white_list},
              {"black_list", amp_.black_list},
              {"black_variables", amp_.black_variables}});
    if (build.low == DType::kFloat16 || build.context.scale_low_loss) {
      build.loss_scaling = build.program.state("optimizer.loss_scaling", {1},
                                               {Init::kConstant, amp_.scaling.initial});
    }
  }

  void gradients(BuildContext& build) override {
    run_pass("amp_parameters", build.program, build.context);
  }

  // Checks for infinite gradients, and sets the scale of the next step.
  void update(BuildContext& build) override {
    if (build.loss_scaling == kNoVar) return;
    Program& program = build.program;
    std::vector<VarId> inputs = {build.loss_scaling};
    for (VarId parameter : build.backward.parameters) inputs.push_back(program.gradient(parameter));
    build.scaling = {.found_inf = program.temporary("found_inf"),
                     .unscale = program.temporary("unscale")};
    program.append(build.optimize, "check_finite_and_unscale", inputs,
                   {build.scaling.found_inf, build.scaling.unscale});
    if (amp_.scaling.dynamic) update_scale(build);
  }

 private:
  void update_scale(BuildContext& build) const {
    Program& program = build.program;
    const VarId good = program.state("optimizer.good_steps", {1}, {}, DType::kInt64);
    const VarId bad = program.state("optimizer.bad_steps", {1}, {}, DType::kInt64);
    program.append(build.optimize, "update_loss_scaling",
                   {build.scaling.found_inf, build.loss_scaling, good, bad},
                   {build.loss_scaling, good, bad},
                   {{"incr_every_n_steps", amp_.scaling.incr_every_n_steps},
                    {"decr_every_n_nan_or_inf", amp_.scaling.decr_every_n_nan_or_inf},
                    {"incr_ratio", amp_.scaling.incr_ratio},
                    {"decr_ratio", amp_.scaling.decr_ratio}});
  }

  const AmpStrategy amp_;
};

}  // namespace

FLEET_META_OPTIMIZER(amp) {
  def.help = "the network computes in a 16-bit type; parameters stay in float32";
  def.position = 310;
  def.fields = {"amp"};
  for (const char* field :
       {"init_loss_scaling", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_ratio",
        "decr_ratio", "use_dynamic_loss_scaling", "custom_white_list", "custom_black_list",
        "custom_black_varnames", "use_pure_fp16", "use_fp16_guard", "use_pure_bf16", "dtype"}) {
    def.fields.push_back(std::string("amp_configs.") + field);
  }
  def.requested = [](const StrategyProto& proto) { return proto.amp(); };
  // Decided before Paddle's rules: what trains in float32 switches off nothing.
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) -> std::string {
    if (!context.low_types.empty()) return "";
    check_amp(proto);
    return "the job trains in float32, because " + context.no_low_type;
  };
  def.remedy = "train on a device with a 16-bit type";
  def.paddle_class = "AMPOptimizer";
  def.wraps = {"lars", "lamb", "recompute"};
  def.create = [](const StrategyProto& proto, const PassContext& context) {
    AmpStrategy amp = check_amp(proto);
    check_weights(amp, context);
    return std::make_unique<Amp>(std::move(amp));
  };
  def.when =
      "on GPUs since Volta and on CPUs with avx512_bf16, if convolutions and matrix products "
      "dominate";
  def.cost =
      "activations have a precision of 8 or 11 bits; the weights have a copy in the low type";
  def.figure =
      "ResNet50 on two cores, images/s: 26.4 in bfloat16, 15.9 in float32 "
      "(docs/performance/mixed_precision.md)";
}

}  // namespace fleet
