#include "passes/pipeline.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "passes/owners.h"
#include "strategy/fields.h"
#include "strategy/meta/model_values.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

using paddle::fleet::PipelineConfig;

constexpr char kCut[] = "strategy pipeline_configs.cut";

[[noreturn]] void refuse_pipeline(const std::string& what, const std::string& next,
                                  ErrorCode code = ErrorCode::kUsage) {
  throw Error(code, what, "strategy", next);
}

// A job of one rank has one stage, whatever the settings say: it trains the same.
int stage_count(const PipelineConfig& config, int ranks) {
  if (config.stages() < 0) {
    refuse_pipeline("pipeline_configs.stages is " + std::to_string(config.stages()),
                    "set it to the number of stages, or remove it");
  }
  if (config.stages() > 0 && config.cut_size() > 0 && config.cut_size() + 1 != config.stages()) {
    refuse_pipeline("pipeline_configs.stages is " + std::to_string(config.stages()) +
                        ", but cut has " + std::to_string(config.cut_size()) + " places",
                    "give one place fewer than stages, or remove one of the two");
  }
  const int stages = config.stages() > 0     ? config.stages()
                     : config.cut_size() > 0 ? config.cut_size() + 1
                                             : ranks;
  if (ranks == 1) return 1;
  if (ranks % stages != 0) {
    refuse_pipeline(
        "the pipeline has " + std::to_string(stages) + " stages, the job " + std::to_string(ranks) +
            " ranks",
        "start a multiple of " + std::to_string(stages) + " ranks, or set pipeline_configs.stages");
  }
  return stages;
}

void require_positive(const char* field, bool given, int value) {
  if (!given || value >= 1) return;
  refuse_pipeline(std::string("pipeline_configs.") + field + " is " + std::to_string(value),
                  "set it to 1 or more");
}

// batch: 0 if it is not known.
int64_t micro_batch_count(const PipelineConfig& config, int64_t batch) {
  require_positive("accumulate_steps", config.has_accumulate_steps(), config.accumulate_steps());
  require_positive("micro_batch_size", config.has_micro_batch_size(), config.micro_batch_size());
  require_positive("micro_batch", config.has_micro_batch(), config.micro_batch());
  int64_t count = config.has_accumulate_steps() ? config.accumulate_steps()
                  : config.has_micro_batch()    ? config.micro_batch()
                                                : 0;
  const int64_t size = config.has_micro_batch_size() ? config.micro_batch_size() : 0;
  if (batch == 0) return std::max<int64_t>(count, 1);
  const std::string of_batch = ", data.batch_size is " + std::to_string(batch);
  if (count > 0 && size > 0 && count * size != batch) {
    refuse_pipeline("pipeline_configs has " + std::to_string(count) + " micro-batches of " +
                        std::to_string(size) + of_batch,
                    "set data.batch_size to " + std::to_string(count * size) +
                        ", the samples of a step, or remove accumulate_steps or micro_batch_size");
  }
  if (count == 0 && size == 0) return 1;
  if (count == 0 && batch % size != 0) {
    refuse_pipeline("pipeline_configs.micro_batch_size is " + std::to_string(size) + of_batch,
                    "set it to a divisor of data.batch_size");
  }
  if (count == 0) count = batch / size;
  if (batch % count != 0) {
    refuse_pipeline("a step has " + std::to_string(count) + " micro-batches" + of_batch,
                    "set data.batch_size to a multiple of that");
  }
  return count;
}

PipelineSchedule schedule_of(const PipelineConfig& config) {
  if (config.schedule_mode() == "F-then-B") return PipelineSchedule::kForwardThenBackward;
  if (config.schedule_mode() == "1F1B") return PipelineSchedule::kOneForwardOneBackward;
  if (config.schedule_mode() == "Eager1F1B") return PipelineSchedule::kEagerOneForwardOneBackward;
  refuse_pipeline("pipeline_configs.schedule_mode is '" + config.schedule_mode() + "'",
                  "set it to 1F1B, Eager1F1B or F-then-B");
}

Division division(const StrategyProto& proto, const PassContext& context) {
  const PipelineConfig& config = proto.pipeline_configs();
  const int stages = stage_count(config, context.ranks);
  Division division{.stages = stages, .micro_batches = micro_batch_count(config, context.batch)};
  for (int rank = context.rank % stages; rank < context.ranks; rank += stages) {
    division.data_parallel.push_back(rank);
  }
  return division;
}

void refuse_combinations(const StrategyProto& proto, const PassContext& context) {
  const bool several = context.stages < context.ranks;  // pipelines
  const auto with = [](const std::string& what, const std::string& next) {
    refuse_pipeline("pipeline cannot be combined with " + what, next);
  };
  if (proto.gradient_merge() && proto.gradient_merge_configs().k_steps() > 1) {
    with("gradient_merge",
         "remove it, and set data.batch_size and accumulate_steps k times as large");
  }
  for (const auto& [on, name] : {std::pair(proto.localsgd(), "localsgd"),
                                 {proto.adaptive_localsgd(), "adaptive_localsgd"},
                                 {proto.dgc(), "dgc"}}) {
    if (on) with(name, std::string("remove ") + name + " or pipeline");
  }
  const auto& sharding = proto.sharding_configs();
  if (proto.sharding() && (!sharding.has_stage() || sharding.stage() != 1)) {
    with("sharding of gradients and parameters",
         "set sharding_configs.stage to 1: each stage then shards its optimizer states");
  }
  if (proto.sharding() && sharding.gradient_merge_acc_step() > 1) {
    with("sharding_configs.gradient_merge_acc_step", "remove it, and raise accumulate_steps");
  }
  if (given_boolean(proto, "build_strategy.enable_auto_fusion").value_or(false)) {
    with("build_strategy.enable_auto_fusion", "remove it: fused operations may cross stages");
  }
  if (proto.build_strategy().reduce_strategy() != 0 && several) {
    with("build_strategy.reduce_strategy Reduce", "remove it, or use sharding with stage 1");
  }
  // Neighbours would both first open the connection on which they receive: NCCL waits for the
  // other.
  if (!context.host_memory && context.stages > 1 && context.micro_batches == 1) {
    with("one micro-batch on GPUs", "set pipeline_configs.accumulate_steps to 2 or more");
  }
  if (proto.sync_batch_norm() && context.stages > 1 && several) {
    with("sync_batch_norm", "remove it: statistics are per micro-batch");
  }
  if (proto.recompute() && proto.recompute_configs().enable_offload() && !context.host_memory) {
    with("recompute_configs.enable_offload", "remove it");
  }
}

class Pipeline : public MetaOptimizer {
 public:
  Pipeline(const PipelineConfig& config, const PassContext& context, int first_stream)
      : cut_(config.cut().begin(), config.cut().end()), next_stream_(first_stream) {
    options_.stages = context.stages;
    options_.stage = context.rank % options_.stages;
    options_.micro_batches = static_cast<int>(context.micro_batches);
    options_.schedule = schedule_of(config);
    mode_ = config.schedule_mode();
  }

  // Both stages of a link add its groups in the same order.
  void groups(BuildContext& build) override {
    for (const bool next : {false, true}) {
      const int neighbour = options_.stage + (next ? 1 : -1);
      if (neighbour < 0 || neighbour >= options_.stages) continue;
      const int rank = build.context.rank, first = next ? rank : rank - 1;
      const auto add = [&](const char* name) {
        const GroupId group = build.program.add_group({.name = name, .ranks = {first, first + 1}});
        return PipelineLink{.group = group, .peer = next ? 1 : 0, .stream = next_stream_++};
      };
      (next ? options_.to_next : options_.from_previous) = add("activations of a pipeline");
      (next ? options_.from_next : options_.to_previous) = add("gradients of a pipeline");
    }
  }

  // Resolves names before other rewrites, so that an error uses the model's names.
  void forward(BuildContext& build) override {
    build.loss_factor /= options_.micro_batches;
    for (const std::string& name : cut_) ends_.push_back(find_value(build, name, kCut));
    if (options_.stages > 1 && ends_.empty()) add_devices(build);
  }

  // A job of one rank has one stage, but its settings must fit a job of several too.
  void fuse_forward(BuildContext& build) override {
    const bool several = options_.stages > 1;
    if (several && ends_.empty()) {
      ends_ = balanced_ends(build.program, build.forward, options_.stages);
    }
    for (const VarId id : ends_) require_value(build, id, kCut);
    const bool enough = !several || static_cast<int>(ends_.size()) + 1 == options_.stages;
    if (!enough || !are_stage_ends(build.program, build.forward, ends_)) {
      throw Error(ErrorCode::kUsage,
                  enough
                      ? "the places are not in the order of the model, or nothing follows the last"
                      : "the model has too few operations for " + std::to_string(options_.stages) +
                            " stages",
                  kCut, "cut it elsewhere, or into fewer stages");
    }
    if (several) mark_stages(build.program, build.forward, ends_);
  }

  void gradients(BuildContext& build) override {
    report(build);
    if (options_.stages == 1 && options_.micro_batches == 1) return;
    FLEET_CHECK(!build.batch.feeds.empty(),
                "a pipeline needs to know which feeds have a row a sample");
    options_.forward = build.forward;
    options_.backward = build.backward.section;
    options_.loss = build.loss;
    options_.batch = build.batch;
    stages_ = split_pipeline(build.program, options_);
    for (const VarId parameter : build.backward.parameters) {
      owners_[parameter] = options_.stages == 1 ? 0 : stages_.of_var.at(parameter);
    }
  }

  void update(BuildContext& build) override {
    if (options_.stages == 1) return;
    const int first = build.context.rank - options_.stage;
    RankGroup group{.name = "pipeline"};
    for (int stage = 0; stage < options_.stages; ++stage) group.ranks.push_back(first + stage);
    messages_.group = build.program.add_group(group);
    check_on_owners(build.program, build.optimize, owners_, options_.stage, messages_);
  }

  void fuse_update(BuildContext& build) override {
    if (options_.stages == 1) return;
    Program& program = build.program;
    if (build.optimizer.text("clip") == "global_norm" && !owners_.empty()) {
      combine_norm(program, build.optimize, owners_, options_.stage, messages_);
    }
    const SectionId others =
        program.add_section("other_stages", program.sections()[build.optimize].when, true);
    move_foreign_updates(program, build.optimize, others, owners_, options_.stage);
    give_to_stages(program);
    if (build.context.data_parallel_degree() > 1) share_statistics(build);
  }

 private:
  // "gpu:1" is stage 1.
  void add_devices(const BuildContext& build) {
    const std::vector<Block>& devices = build.devices;
    if (devices.empty()) return;
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string& name = devices[i].name;
      const std::string number = name.substr(name.find(':') + 1);
      if (number != std::to_string(i)) {
        refuse_pipeline("the model's device '" + name + "' comes in place " + std::to_string(i),
                        "use the devices gpu:0, gpu:1... in this order, one for each stage",
                        ErrorCode::kUnsupported);
      }
      if (i > 0) ends_.push_back(devices[i].output);
    }
    if (static_cast<int>(devices.size()) == options_.stages) return;
    refuse_pipeline("the model uses " + std::to_string(devices.size()) +
                        " devices, the pipeline has " + std::to_string(options_.stages) + " stages",
                    "set pipeline_configs.stages to " + std::to_string(devices.size()) +
                        ", or cut the model with pipeline_configs.cut");
  }

  // The first pipeline saves; its ranks are numbered like their stages.
  void give_to_stages(Program& program) const {
    const auto give = [&](VarId id, int stage) {
      program.var(id).owner = stage;
      program.var(id).remote = stage != options_.stage;
    };
    for (const auto& [id, stage] : stages_.of_var) give(id, stage);
    for (const auto& [parameter, states] : states_of_updates(program)) {
      const auto owner = owners_.find(parameter);
      if (owner == owners_.end()) continue;
      for (const VarId state : states) give(state, owner->second);
    }
  }

  // Running statistics differ between the pipelines until the first sends its own.
  void share_statistics(BuildContext& build) {
    Program& program = build.program;
    std::vector<VarId> own;
    bool any = false;
    for (const auto& [id, stage] : stages_.of_var) {
      if (program.var(id).kind != VarKind::kState || program.var(id).copy_of != kNoVar) continue;
      any = true;
      if (stage == options_.stage) own.push_back(id);
    }
    const GroupId group = program.add_group(
        {.name = "statistics of a stage", .ranks = build.context.data_parallel_ranks()});
    if (!any) return;
    const SectionId sync =
        program.add_section("share_statistics", {.training = false, .sync = true});
    if (own.empty()) {  // all ranks run a sync, or none
      program.append(sync, "fill", {}, {program.temporary("nothing_to_share")},
                     {{"shape", std::vector<int64_t>{1}}, {"value", 0.0}});
      return;
    }
    program.append(sync, "broadcast", own, own,
                   {{"root", int64_t{0}}, {"communicator", int64_t{group}}});
  }

  void report(const BuildContext& build) const {
    const PassContext& context = build.context;
    if (context.rank != 0) return;
    std::vector<std::string> places;
    for (const VarId id : ends_) places.push_back(build.program.var(id).name);
    const std::string parts = std::to_string(options_.micro_batches) + " micro-batches";
    if (options_.stages == 1) {
      spdlog::info("pipeline: one stage, {} one after another", parts);
      return;
    }
    const int pipelines = context.data_parallel_degree();
    spdlog::info("pipeline: {} stages, cut after {}; {} a step, {}{}", options_.stages,
                 join(places, ", "), parts, mode_,
                 pipelines > 1 ? "; " + std::to_string(pipelines) + " pipelines" : "");
    if (options_.micro_batches < options_.stages) {
      spdlog::warn(
          "strategy: pipeline_configs.accumulate_steps is {}: with fewer micro-batches than stages "
          "some stage always waits; set it to several times the number of stages",
          options_.micro_batches);
    }
  }

  const std::vector<std::string> cut_;
  int next_stream_;
  std::string mode_;
  PipelineOptions options_;
  std::vector<VarId> ends_;
  StageMap stages_;
  Owners owners_;  // the stage of each trained parameter
  OwnerMessages messages_;
};

}  // namespace

// Fields as in Paddle's PipelineOptimizer. Runs when gradients have their final types and before
// they are combined over ranks, and before other owners take their part of the updates.
FLEET_META_OPTIMIZER(pipeline) {
  def.help = "the model is cut into stages on different ranks; micro-batches pass through them";
  def.position = 312;
  def.fields = {"pipeline", "pipeline_configs"};
  def.requested = [](const StrategyProto& proto) { return proto.pipeline(); };
  def.divide = division;
  def.create = [](const StrategyProto& proto, const PassContext& context) {
    const PipelineConfig& config = proto.pipeline_configs();
    refuse_combinations(proto, context);
    const int first_stream = kCommunicationStream + std::max(proto.nccl_comm_num(), 1);
    return std::make_unique<Pipeline>(config, context, first_stream);
  };
  def.when =
      "if a model does not fit into a rank's memory, or the links are too slow to exchange its "
      "gradients";
  def.cost =
      "in a step of m micro-batches, each of p stages waits (p-1)/(m+p-1) of the time; "
      "gradient_merge, localsgd, dgc, and stages 2 and 3 of sharding are refused";
}

}  // namespace fleet
