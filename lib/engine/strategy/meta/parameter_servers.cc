// parameter_servers: servers hold the parameters and make the updates. Trainers push the gradients
// of loss / trainers, which the servers add up, so that updates equal those of collective training;
// in async and geo each trainer has the gradients of its own loss.
// The section of the updates stays in the Program, with its states: servers make their updates of
// it, and the names in a checkpoint are the same. On a trainer it runs only in steps with the flag
// "local_update", which geo sets.
#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"
#include "strategy/names.h"
#include "strategy/server_mode.h"

namespace fleet {
namespace {

// Features that need collectives between the ranks, or other updates than the servers make.
void check_combinations(const StrategyProto& proto, const PassContext& context) {
  struct Feature {
    bool wanted;
    const char *name, *reason;
  };
  const Feature features[] = {
      {proto.sharding(), "sharding", "servers divide the optimizer's states among themselves"},
      {proto.pipeline(), "pipeline", "each trainer has the whole model"},
      {proto.dgc(), "dgc", "whole gradients are pushed"},
      {proto.localsgd(), "localsgd", "servers make the updates"},
      {proto.adaptive_localsgd(), "adaptive_localsgd", "servers make the updates"},
      {proto.use_hierarchical_allreduce(), "use_hierarchical_allreduce",
       "servers add up gradients"},
      {proto.sync_batch_norm(), "sync_batch_norm",
       "trainers exchange no statistics in a step; those of trainer 0 are saved"},
      {proto.auto_(), "auto", "it chooses settings of collective training"}};
  for (const auto& [wanted, name, reason] : features) {
    if (!wanted) continue;
    throw Error(ErrorCode::kUnsupported,
                std::string(name) + " cannot be combined with parameter servers: " + reason,
                "strategy", "remove it, or train without --server_num and --servers");
  }
  FLEET_CHECK(context.stages == 1 && context.data_parallel_degree() == context.ranks,
              "trainers of parameter servers that are divided");
}

class ParameterServers : public MetaOptimizer {
 public:
  explicit ParameterServers(const ServerSettings& settings) : settings_(settings) {}

  void groups(BuildContext& build) override {
    flag_ = build.program.add_flag(kLocalUpdateFlag);
    build.updates_elsewhere = true;
  }

  void forward(BuildContext& build) override {
    build.sums_gradients = false;
    // Each gradient makes an update of its own, so that only steps are averaged (gradient_merge).
    if (settings_.apart()) {
      const double steps = 1 / (build.loss_factor * build.context.data_parallel_degree());
      build.loss_factor = 1 / std::round(steps);
    }
    if (build.loss_scaling == kNoVar) return;
    throw Error(ErrorCode::kUnsupported,
                "loss scaling (float16) cannot be combined with parameter servers",
                "strategy amp_configs.dtype", "set it to bfloat16, or remove amp");
  }

  void gradients(BuildContext& build) override { build.update_when.flag = flag_; }

  // Gradients are pushed after the step. Those of gradient_merge are states.
  void update(BuildContext& build) override {
    std::vector<VarId> pushed = build.backward.parameters;
    pushed.insert(pushed.end(), build.rows.begin(), build.rows.end());
    for (const VarId parameter : pushed) {
      const VarId gradient = build.program.gradient(parameter);
      const bool kept = gradient == kNoVar ||
                        build.program.var(gradient).kind != VarKind::kTemporary ||
                        std::ranges::find(build.keep, gradient) != build.keep.end();
      if (!kept) build.keep.push_back(gradient);
    }
  }

  void before_step(HostStep& step) override {
    if (settings_.mode == ServerMode::kGeo) step.info.flags |= uint64_t{1} << flag_;
  }

 private:
  const ServerSettings settings_;
  FlagId flag_ = kNoFlag;
};

// Paddle's scripts for collective training set the fields too: its setter of a_sync also fills
// a_sync_configs.
void report_no_effect(const StrategyProto& proto, const std::vector<std::string>& fields) {
  const std::vector<std::string> given = given_fields(proto, fields);
  if (given.empty()) return;
  if ((proto.has_a_sync() && proto.a_sync()) || proto.a_sync_configs().k_steps() > 0) {
    spdlog::info(
        "strategy: {}: setting of parameter servers, but the job has none and trains collectively; "
        "for servers, start it with --server_num=N --worker_num=M",
        join(given, ", "));
    return;
  }
  spdlog::debug("strategy: {}: setting of parameter servers, no effect in collective training",
                join(given, ", "));
}

void report_mode(const StrategyProto& proto, const ServerSettings& settings) {
  spdlog::info("parameter servers: mode {}", settings.text());
  const std::vector<std::string> unread = unread_server_fields(proto, settings.mode);
  if (!unread.empty()) {
    spdlog::warn("strategy: no effect in mode {}: {}", name_of(settings.mode), join(unread, ", "));
  }
}

}  // namespace

FLEET_META_OPTIMIZER(parameter_servers) {
  def.help = "servers hold the parameters and update them from the gradients of all trainers";
  def.position = 347;  // behind what makes the gradients
  def.fields = {"a_sync", "a_sync_configs"};
  // The job's servers request it, not a field. Refusals come before the choices of others.
  def.obstacle = [](const StrategyProto& proto, const PassContext& context) -> std::string {
    if (context.servers > 0) check_combinations(proto, context);
    return "";
  };
  def.create = [fields = def.fields](const StrategyProto& proto,
                                     const PassContext& context) -> std::unique_ptr<MetaOptimizer> {
    if (context.servers == 0) {
      if (context.rank == 0) report_no_effect(proto, fields);
      return nullptr;
    }
    const ServerSettings settings = server_settings(proto);
    if (context.rank == 0) report_mode(proto, settings);
    return std::make_unique<ParameterServers>(settings);
  };
  def.when =
      "the job is started with `fleetrun --server_num` or `--servers` "
      "([parameter_servers.md](../how-to/parameter_servers.md)); without servers the fields have "
      "no effect";
  def.cost =
      "a step sends all gradients to the servers and receives all parameters, in geo one of k "
      "steps; trainers keep the "
      "memory of the optimizer's states, for checkpoints";
}

}  // namespace fleet
