// adaptive_localsgd: localsgd with a number of steps between averages that follows the loss (Wang
// and Joshi, 2019, in the form of Paddle's AdaptiveLocalSGDOptimizer). Steps count from 1:
// parameters are averaged after each one up to begin_step, then whenever k steps have passed since
// the last average; k starts as init_k_steps and is chosen again at each later average
// (ops/local_steps.cc).
#include "base/log.h"
#include "strategy/meta/average_parameters.h"

namespace fleet {
namespace {

class AdaptiveLocalSgd : public AverageParameters {
 public:
  AdaptiveLocalSgd(int init_steps, int64_t begin) : init_steps_(init_steps), begin_(begin) {}

  void groups(BuildContext& build) override {
    AverageParameters::groups(build);
    first_ = build.program.add_flag("the first step");
    adapts_ = build.program.add_flag("choose the number of local steps");
    leads_ = build.context.rank == 0;
  }

  void fuse_update(BuildContext& build) override {
    AverageParameters::fuse_update(build);
    Program& program = build.program;
    steps_ = program.state("optimizer.adaptive_localsgd_steps", {4}, Init());
    build.keep.push_back(steps_);
    append(build, "count_local_step", {}, "step");
    append(build, "first_local_step", {.flag = first_}, "first");
    append(build, "choose_local_steps", {.flag = adapts_}, "adapt");
    append(build, "local_steps_done", {.flag = flag()}, "average");
  }

  void before_step(HostStep& step) override {
    const int64_t number = step.info.step + 1;
    if (stale_) read_states(step, number);
    const auto set = [&](FlagId flag) { step.info.flags |= uint64_t{1} << flag; };
    if (number == 1) set(first_);
    const bool begins = number <= begin_;
    if (!begins && number - averaged_ != k_) return;
    request(step);
    averaged_ = number;
    if (begins) return;
    set(adapts_);
    stale_ = true;
  }

  void measure(std::map<std::string, double>& values) const override {
    values["local_steps"] = static_cast<double>(k_);
  }

 private:
  // Reads the states: at the start, also of a resumed run, and after k was chosen.
  void read_states(HostStep& step, int64_t number) {
    const std::vector<float> steps = step.read(steps_);
    const int64_t before = k_;
    k_ = steps[2] > 0 ? static_cast<int64_t>(steps[2]) : init_steps_;
    averaged_ = number - 1 - static_cast<int64_t>(steps[3]);
    stale_ = false;
    if (leads_ && k_ != before) {
      spdlog::debug("adaptive_localsgd: after step {} parameters are averaged every {} steps",
                    averaged_, k_);
    }
  }

  void append(BuildContext& build, const std::string& name, Predicate when,
              const std::string& event) {
    Program& program = build.program;
    const SectionId section = program.add_section(name, when);
    const bool reads_loss = event == "first" || event == "adapt";
    const VarId loss = reads_loss ? append_mean(build, section, build.loss) : kNoVar;
    program.append(section, "local_steps",
                   {steps_, loss, reads_loss ? build.learning_rate : kNoVar}, {steps_},
                   {{"event", event}, {"init_steps", int64_t{init_steps_}}});
  }

  const int init_steps_;
  const int64_t begin_;
  FlagId first_ = kNoFlag, adapts_ = kNoFlag;
  VarId steps_ = kNoVar;
  bool leads_ = false;
  bool stale_ = true;  // the states have newer values than this object
  int64_t k_ = 0, averaged_ = 0;
};

}  // namespace

FLEET_META_OPTIMIZER(adaptive_localsgd) {
  def.help =
      "ranks train separately and average their parameters, less often while the loss is high";
  def.position = 340;
  def.fields = {"adaptive_localsgd", "adaptive_localsgd_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.adaptive_localsgd(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) {
    const auto& configs = proto.adaptive_localsgd_configs();
    require_positive("adaptive_localsgd_configs", "init_k_steps", configs.init_k_steps());
    require_positive("adaptive_localsgd_configs", "begin_step", configs.begin_step());
    return averaging_obstacle(context);
  };
  def.paddle_class = "AdaptiveLocalSGDOptimizer";
  def.wraps = {"amp"};
  def.needs_float32 = kAveragesNeedFloat32;
  def.create = [](const StrategyProto& proto, const PassContext&) {
    const auto& configs = proto.adaptive_localsgd_configs();
    return std::make_unique<AdaptiveLocalSgd>(configs.init_k_steps(), configs.begin_step());
  };
  def.when = "as for localsgd, if fleetrun should choose the interval";
  def.cost =
      "as for localsgd; each average also reduces the loss over the ranks, and the host waits for "
      "it";
  def.figure =
      "ResNet-18 on generated images, init_k_steps of 4: averages every 2 steps, then after each "
      "(`scripts/bench.sh links localsgd`)";
}

}  // namespace fleet
