// localsgd: ranks train apart and average their parameters now and then (Lin et al., 2019, in the
// form of Paddle's LocalSGDOptimizer). Steps count from 1: after each one up to begin_step, then
// after every k_steps-th, p = sum over ranks of p / ranks. Only parameters are averaged: momentum
// stays each rank's own. Before evaluation and saving they are averaged too.
#include "base/error.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr int kCommunicationStream = 1;

class LocalSgd : public MetaOptimizer {
 public:
  LocalSgd(int64_t every, int64_t begin) : every_(every), begin_(begin) {}

  void groups(Build& build) override {
    group_ =
        build.program.add_group({.name = "localsgd", .ranks = build.context.data_parallel_ranks()});
    flag_ = build.program.add_flag("average the parameters");
  }

  // Each rank follows the mean of its own samples.
  void forward(Build& build) override {
    build.loss_factor = 1;
    build.sums_gradients = false;
  }

  void fuse_update(Build& build) override {
    Program& program = build.program;
    mark_states(program, build.optimize);
    const SectionId section = program.add_section("average", {.sync = true, .flag = flag_});
    const double part = 1.0 / build.context.data_parallel_degree();
    std::vector<VarId> averages;
    for (const VarId parameter : build.backward.parameters) {
      averages.push_back(program.emit(section, "scale", {parameter}, {{"scale", part}},
                                      program.var(parameter).name + ".average")[0]);
    }
    program.append(section, "all_reduce", averages, averages, {{"communicator", int64_t{group_}}})
        .stream = kCommunicationStream;
    for (size_t i = 0; i < averages.size(); ++i) {
      const VarId parameter = build.backward.parameters[i], copy = program.copy_of(parameter);
      program.append(section, "sum", {averages[i]}, {parameter});
      if (copy == kNoVar) continue;
      program.append(section, "cast", {parameter}, {copy},
                     {{"to", std::string(name_of(program.var(copy).dtype))}});
    }
  }

  void before_step(HostStep& step) override {
    const int64_t number = step.info.step + 1;
    const bool averages = number <= begin_ || (number - begin_) % every_ == 0;
    if (averages) step.info.flags |= uint64_t{1} << flag_;
  }

 private:
  static void mark_states(Program& program, SectionId optimize) {
    for (const Op& op : program.ops()) {
      if (op.section != optimize) continue;
      for (const VarId id : op.outputs) {
        if (id == kNoVar || program.var(id).kind != VarKind::kState) continue;
        if (program.var(id).copy_of == kNoVar) program.var(id).per_rank = true;
      }
    }
  }

  const int64_t every_, begin_;
  GroupId group_ = -1;
  FlagId flag_ = kNoFlag;
};

void require_positive(const char* field, int value) {
  if (value >= 1) return;
  throw Error(ErrorCode::kUsage,
              std::string("localsgd_configs.") + field + " is " + std::to_string(value), "strategy",
              "give a number from 1 up");
}

}  // namespace

FLEET_META_OPTIMIZER(localsgd) {
  def.help = "ranks train apart and average their parameters every k steps";
  def.position = 340;
  def.fields = {"localsgd", "localsgd_configs"};
  def.asked = [](const StrategyProto& proto) { return proto.localsgd(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) -> std::string {
    require_positive("k_steps", proto.localsgd_configs().k_steps());
    require_positive("begin_step", proto.localsgd_configs().begin_step());
    if (context.data_parallel_degree() <= 1) return "it needs several ranks";
    if (context.optimizer == "sgd" || context.optimizer == "momentum") return "";
    return "it needs optimizer.name sgd or momentum, and this job's is " + context.optimizer;
  };
  def.paddle_class = "LocalSGDOptimizer";
  def.wraps = {"amp"};
  def.create = [](const StrategyProto& proto,
                  const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    const auto& configs = proto.localsgd_configs();
    return std::make_unique<LocalSgd>(configs.k_steps(), configs.begin_step());
  };
  def.field_help = {
      {"localsgd_configs.k_steps", "steps between two averages of the parameters, from 1 up"},
      {"localsgd_configs.begin_step",
       "up to this step, counted from 1, the parameters are averaged after each step"}};
  def.when = "over slow networks, where a little accuracy may go for fewer bytes";
  def.cost =
      "ranks drift apart between two averages; momentum stays each rank's own, and "
      "checkpoints hold every rank's part";
}

}  // namespace fleet
