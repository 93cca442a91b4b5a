// dgc: Deep Gradient Compression (Lin et al., 2018), in the form of Paddle's DGCMomentumOptimizer.
// Steps count from 0. From step rampup_begin_step on, parameters of at least 16384 elements send k
// = numel * (1 - sparsity) elements of their accumulated gradients (the rule and its local
// momentum: ops/dgc_select.cc) and descend along the mean of the values that the ranks sent
// (ops/dgc_apply.cc). Before that step these parameters are trained by momentum on summed
// gradients; all other parameters always are. Both use one velocity. Each stage of the ramp uses
// the next sparsity of its list: stage min(len - 1, (step - begin) * len / rampup_step), with one
// section per stage.
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "optim/parameter_groups.h"
#include "strategy/meta/all_reduce.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr int64_t kFewestElements = 16384;

// The steps with one sparsity.
struct Stage {
  int64_t from, until;
  float sparsity;
};

std::vector<Stage> stages_of(const paddle::fleet::DGCConfig& config) {
  std::vector<float> sparsity(config.sparsity().begin(), config.sparsity().end());
  if (sparsity.empty()) sparsity = {0.999f};
  const int64_t begin = config.rampup_begin_step(), ramp = config.rampup_step();
  const auto count = static_cast<int64_t>(sparsity.size());
  // The first step whose index (step - begin) * count / ramp is i.
  const auto start = [&](int64_t i) { return begin + (i * ramp + count - 1) / count; };
  std::vector<Stage> stages;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t until = i + 1 < count ? start(i + 1) : kForever;
    if (start(i) < until) stages.push_back({start(i), until, sparsity[i]});
  }
  return stages;
}

// In float, like Paddle's operator, so that both give the same number.
int64_t sent_of(int64_t elements, float sparsity) {
  const float ratio = 1 - sparsity;
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<float>(elements) * ratio));
}

class Dgc : public MetaOptimizer {
 public:
  explicit Dgc(std::vector<Stage> stages) : stages_(std::move(stages)) {}

  void groups(BuildContext& build) override {
    group_ = build.program.add_group({.name = "dgc", .ranks = build.context.data_parallel_ranks()});
  }

  void communication(BuildContext& build) override {
    Program& program = build.program;
    for (const VarId parameter : build.backward.parameters) {
      const Var& var = program.var(parameter);
      const VarId gradient = program.gradient(parameter);
      if (!var.trainable || gradient == kNoVar) continue;
      if (var.shape.elements() >= kFewestElements) parameters_.push_back(parameter);
    }
    log_schedule(build);
    if (parameters_.empty()) return;
    if (build.loss_scaling != kNoVar) {
      throw Error(ErrorCode::kUnsupported, "dgc cannot be combined with loss scaling",
                  "strategy amp", "set amp_configs.dtype to bfloat16, or remove dgc or amp");
    }
    SectionId sums = -1;
    if (starts() > 0) sums = program.add_section("dgc_dense_sums", between(build, 0, starts()));
    for (const VarId parameter : parameters_) build.updated_separately[parameter] = sums;
  }

  void update(BuildContext& build) override {
    if (parameters_.empty()) return;
    check_clipping(build.optimizer);
    for (const ParameterGroup& group : parameter_groups(build.optimizer)) {
      if (group.rate == 1) continue;
      throw Error(ErrorCode::kUsage, "dgc uses one rate for all parameters", "optimizer.groups",
                  "remove 'rate' from '" + group.pattern + "', or remove dgc");
    }
    if (build.optimizer.number("layer_decay") != 1) {
      throw Error(ErrorCode::kUsage, "dgc uses one rate for all parameters",
                  "optimizer.layer_decay", "set it to 1, or remove dgc");
    }
    Program& program = build.program;
    if (starts() > 0) {
      const Predicate dense = between(build, 0, starts());
      append_updates(program, program.add_section("dgc_dense_updates", dense), parameters_,
                     build.learning_rate, build.optimizer, build.scaling);
    }
    for (const VarId parameter : parameters_) {
      velocities_.push_back(own_state(program, parameter, "momentum"));
      residuals_.push_back(own_state(program, parameter, "residual"));
    }
    for (const Stage& stage : stages_) append(build, stage);
  }

 private:
  int64_t starts() const { return stages_.front().from; }

  // When updates run, limited to those steps.
  static Predicate between(const BuildContext& build, int64_t from, int64_t until) {
    Predicate when = build.update_when;
    when.from_step = from;
    when.until_step = until;
    return when;
  }

  void log_schedule(const BuildContext& build) const {
    if (build.context.rank != 0) return;
    if (parameters_.empty()) {
      spdlog::warn(
          "dgc: no effect: no parameter has {} elements, and smaller ones are summed as a whole",
          kFewestElements);
      return;
    }
    std::vector<std::string> parts;
    int64_t elements = 0;
    for (const VarId id : parameters_) elements += build.program.var(id).shape.elements();
    for (const Stage& stage : stages_) {
      parts.push_back(std::to_string(total(sent_by(build.program, stage))) + " from step " +
                      std::to_string(stage.from) + " on");
    }
    spdlog::info(
        "dgc: of {} elements in {} parameters each rank sends {}; the other parameters "
        "({}) are summed as a whole",
        elements, parameters_.size(), join(parts, ", "),
        build.backward.parameters.size() - parameters_.size());
  }

  static void check_clipping(const Settings& optimizer) {
    const std::string& clip = optimizer.text("clip");
    if (clip == "none" || clip == "norm") return;
    throw Error(ErrorCode::kUsage, "clip = " + clip + " cannot be combined with dgc", "optimizer",
                "set clip to norm or none, or remove dgc");
  }

  // Once parameters send only parts, each rank has its own velocity.
  static VarId own_state(Program& program, VarId parameter, const std::string& name) {
    const Var& var = program.var(parameter);
    const std::string full = var.name + "." + name;
    VarId state = program.find(full);
    if (state == kNoVar) state = program.state(full, var.shape, Init());
    program.var(state).per_rank = true;
    return state;
  }

  std::vector<int64_t> sent_by(const Program& program, const Stage& stage) const {
    std::vector<int64_t> counts;
    for (const VarId id : parameters_) {
      counts.push_back(sent_of(program.var(id).shape.elements(), stage.sparsity));
    }
    return counts;
  }
  static int64_t total(const std::vector<int64_t>& counts) {
    int64_t sum = 0;
    for (const int64_t count : counts) sum += count;
    return sum;
  }

  // The gradient in float32.
  static VarId wide_gradient(Program& program, SectionId section, VarId parameter) {
    const VarId gradient = program.gradient(parameter);
    if (program.var(gradient).dtype == DType::kFloat32) return gradient;
    return program.emit(section, "cast", {gradient}, {}, program.var(parameter).name + ".wide")[0];
  }

  // The factor that bounds a rank's part of the gradient so that the sum of N such parts, if they
  // were independent, has a norm of at most clip_norm.
  VarId clip_scale(BuildContext& build, SectionId section, VarId parameter) const {
    if (build.optimizer.text("clip") != "norm") return kNoVar;
    Program& program = build.program;
    const std::string hint = program.var(parameter).name + ".norm";
    const double bound =
        build.optimizer.number("clip_norm") / std::sqrt(build.context.data_parallel_degree());
    const VarId squares =
        program.emit(section, "sum_of_squares", {program.gradient(parameter)}, {}, hint)[0];
    return program.emit(section, "clip_scale", {squares}, {{"clip_norm", bound}}, hint)[0];
  }

  void append(BuildContext& build, const Stage& stage) {
    Program& program = build.program;
    const int degree = build.context.data_parallel_degree();
    const std::string name = "dgc_from_" + std::to_string(stage.from);
    const SectionId section = program.add_section(name, between(build, stage.from, stage.until));
    const std::vector<int64_t> counts = sent_by(program, stage);
    const VarId encoded = program.temporary(name + ".encoded");
    const VarId gathered = program.temporary(name + ".gathered");
    std::vector<VarId> inputs, outputs = {encoded}, applied = {build.learning_rate, gathered};
    std::vector<double> decays;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const VarId parameter = parameters_[i];
      inputs.insert(inputs.end(),
                    {parameter, wide_gradient(program, section, parameter), velocities_[i],
                     residuals_[i], clip_scale(build, section, parameter)});
      outputs.insert(outputs.end(), {velocities_[i], residuals_[i]});
      applied.push_back(parameter);
      decays.push_back(weight_decay_of(build.optimizer, program.var(parameter)));
    }
    program.append(section, "dgc_select", inputs, outputs,
                   {{"counts", counts},
                    {"weight_decays", decays},
                    {"momentum", build.optimizer.number("momentum")},
                    {"use_nesterov", build.optimizer.boolean("use_nesterov")},
                    // The gradient of the loss contains 1 / degree, which this factor cancels.
                    {"gradient_factor", static_cast<double>(degree)}});
    program
        .append(section, "all_gather", {encoded}, {gathered}, {{"communicator", int64_t{group_}}})
        .stream = kCommunicationStream;
    program.append(section, "dgc_apply", applied, parameters_, {{"counts", counts}});
    for (const VarId parameter : parameters_) program.append_copy(section, parameter);
  }

  const std::vector<Stage> stages_;
  GroupId group_ = -1;
  std::vector<VarId> parameters_, velocities_, residuals_;
};

void check(const paddle::fleet::DGCConfig& config) {
  const auto refuse = [](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::kUsage, "dgc_configs." + what, "strategy", next);
  };
  if (config.rampup_begin_step() < 0) {
    refuse("rampup_begin_step is " + std::to_string(config.rampup_begin_step()),
           "set it to 0 or more");
  }
  if (config.rampup_step() < 1) {
    refuse("rampup_step is " + std::to_string(config.rampup_step()), "set it to 1 or more");
  }
  for (const float sparsity : config.sparsity()) {
    if (sparsity > 0 && sparsity < 1) continue;
    refuse("sparsity has " + std::to_string(sparsity),
           "set the fractions that are not sent, such as 0.999: above 0 and below 1");
  }
}

}  // namespace

// Fields and the order of the ramp as in Paddle's DGCOptimizer.
FLEET_META_OPTIMIZER(dgc) {
  def.help = "only the largest elements of large gradients are sent; the rest is accumulated";
  def.position = 345;
  def.fields = {"dgc", "dgc_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.dgc(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) -> std::string {
    check(proto.dgc_configs());
    if (context.data_parallel_degree() <= 1) return "it needs several ranks";
    if (reduces_to_owners(proto, context)) return "it updates parameters on all ranks, not on one";
    if (context.optimizer == "momentum") return "";
    return "it needs optimizer.name momentum, but this job's is " + context.optimizer;
  };
  def.paddle_class = "DGCOptimizer";
  def.needs_float32 = "its own update of the parameters rounds to nearest";
  def.create = [](const StrategyProto& proto, const PassContext&) {
    return std::make_unique<Dgc>(stages_of(proto.dgc_configs()));
  };
  def.when = "over slow networks, for models with large weights";
  def.cost =
      "two states as large as the parameters, saved by each rank; a pass over them in each step; a "
      "little accuracy, less with a ramp-up";
  def.figure =
      "VGG-16 at 32 x 32, 15.3 M parameters, sparsity 0.999, 200 Mbit/s: 0.15 MB instead of 61.2 "
      "per step, 4.6 times the speed (`scripts/bench.sh links dgc`)";
}

}  // namespace fleet
