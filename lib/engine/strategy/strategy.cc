#include "strategy/strategy.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"

namespace fleet {
namespace {

using Defs = MetaOptimizerDefs;

void reject_unclaimed_fields(const StrategyProto& proto, const Defs& defs) {
  std::set<std::string> taken;
  for (const MetaOptimizerDef* def : defs) taken.insert(def->fields.begin(), def->fields.end());
  const std::vector<std::string> rest = unclaimed_fields(proto, taken);
  if (rest.empty()) return;
  throw Error(ErrorCode::kUnsupported, "not supported yet: " + join(rest, ", "), "strategy",
              "remove the named fields, or set them to their defaults");
}

// Drops those that the strategy does not request, and those that cannot act in this job.
Defs without_obstacles(Defs defs, const StrategyProto& proto, const PassContext& context) {
  std::vector<std::string> lines;  // shown if no other refuses the strategy
  std::erase_if(defs, [&](const MetaOptimizerDef* def) {
    if (def->requested && !def->requested(proto)) return true;
    const std::string obstacle = def->obstacle ? def->obstacle(proto, context) : "";
    if (!obstacle.empty()) {
      lines.push_back(def->name + " is switched off: " + obstacle + "; " + def->remedy +
                      ", or remove " + def->name);
    }
    return !obstacle.empty();
  });
  for (const std::string& line : lines) spdlog::warn("strategy: {}", line);
  return defs;
}

void report_loser(const MetaOptimizerDef& loser, const std::vector<std::string>& order,
                  const Defs& winners) {
  // If it can be combined with each of them, but not with all together, removing any of them may
  // help.
  std::vector<std::string> against = conflicts(loser, winners);
  if (against.empty()) against = order;
  spdlog::warn(
      "strategy: {} is switched off: it cannot be combined with {}; by Paddle's rules {} act{}; "
      "remove {}, or {}",
      loser.name, join(against, " and "), join(order, " > "), order.size() == 1 ? "s" : "",
      loser.name, join(against, " and "));
}

// Drops those that lose against others by Paddle's rules, and logs them (Paddle does not).
Defs without_losers(Defs defs) {
  Defs links = defs;
  std::erase_if(links, [](const MetaOptimizerDef* def) { return def->paddle_class.empty(); });
  const std::vector<std::string> order = choose_chain(links);
  const auto wins = [&](const std::string& name) {
    return std::find(order.begin(), order.end(), name) != order.end();
  };
  Defs winners = links;
  std::erase_if(winners, [&](const MetaOptimizerDef* link) { return !wins(link->name); });
  for (const MetaOptimizerDef* link : links) {
    if (!wins(link->name)) report_loser(*link, order, winners);
  }
  std::erase_if(defs, [&](const MetaOptimizerDef* def) {
    return !def->paddle_class.empty() && !wins(def->name);
  });
  return defs;
}

void check_weights(const MetaOptimizerDef& def, const PassContext& context) {
  if (context.weights == DType::kFloat32 || def.needs_float32.empty()) return;
  throw Error(ErrorCode::kUsage,
              std::string(name_of(context.weights)) + " cannot be combined with " + def.name +
                  ": " + def.needs_float32,
              "train.weights_dtype", "set it to float32, or remove strategy." + def.name);
}

}  // namespace

PassContext divide(const StrategyProto& proto, PassContext context) {
  for (const MetaOptimizerDef* def : meta_optimizers_by_position()) {
    if (!def->divide || (def->requested && !def->requested(proto))) continue;
    const Division division = def->divide(proto, context);
    context.data_parallel = division.data_parallel;
    context.stages = division.stages;
    context.micro_batches = division.micro_batches;
  }
  return context;
}

Strategy::Strategy(const StrategyProto& proto, const PassContext& context)
    : context_(divide(proto, context)) {
  FLEET_CHECK(context.ranks >= 1, "a job without ranks");
  const Defs defs = meta_optimizers_by_position();
  reject_unclaimed_fields(proto, defs);
  for (const MetaOptimizerDef* def : without_losers(without_obstacles(defs, proto, context_))) {
    names_.push_back(def->name);
    check_weights(*def, context_);
    if (def->check) def->check(proto, context_);
    if (!def->create) continue;
    if (auto part = def->create(proto, context_)) parts_.push_back(std::move(part));
  }
}

void Strategy::run(void (MetaOptimizer::*phase)(BuildContext&)) {
  for (const auto& part : parts_) (part.get()->*phase)(*build_);
}

const BackwardResult& Strategy::append_backward(Program& program, SectionId forward, VarId loss,
                                                ModelParts parts) {
  FLEET_CHECK(!build_, "a strategy can be used for one program only");
  build_ = std::make_unique<BuildContext>(
      BuildContext{.program = program,
                   .context = context_,
                   .forward = forward,
                   .loss = loss,
                   .blocks = std::move(parts.blocks),
                   .devices = std::move(parts.devices),
                   .batch = std::move(parts.batch),
                   .trained_later = std::move(parts.trained_later),
                   .loss_factor = 1.0 / context_.data_parallel_degree(),
                   .rows = std::move(parts.rows)});
  run(&MetaOptimizer::groups);
  run(&MetaOptimizer::forward);
  if (program.var(loss).dtype != DType::kFloat32) {
    throw Error(ErrorCode::kUsage,
                "the loss would be " + std::string(name_of(program.var(loss).dtype)),
                "strategy amp_configs.custom_white_list", "remove mean from it");
  }
  run(&MetaOptimizer::fuse_forward);
  {
    const PassStepRecorder recorder("backward", program, context_);
    build_->backward = fleet::append_backward(program, forward, loss, build_->loss_factor,
                                              build_->loss_scaling, build_->rows);
  }
  if (build_->backward.parameters.empty() && build_->rows.empty()) {
    throw Error(ErrorCode::kUsage, "the loss depends on no parameter that is trained", "model",
                "use the results of its layers in what it returns");
  }
  run(&MetaOptimizer::fuse_backward);
  if (context_.weights != DType::kFloat32) run_pass("narrow_parameters", program, context_);
  run(&MetaOptimizer::gradients);
  sparse_rows_.find(*build_);
  run(&MetaOptimizer::communication);
  sparse_rows_.exchange(*build_);
  verify(program);
  return build_->backward;
}

// A rank that leaves out an update while others apply it would drift away from them. If only one
// rank could leave it out, no rank does.
void Strategy::append_check(OnNan on_nan) {
  BuildContext& build = *build_;
  if (on_nan == OnNan::kContinue || build.loss_scaling != kNoVar) return;
  const bool agreed = std::ranges::all_of(
      build.updated_separately, [&](const auto& entry) { return sparse_rows_.has(entry.first); });
  if (!agreed && on_nan == OnNan::kSkip) {
    throw Error(ErrorCode::kUsage,
                "skip cannot be combined with gradients that partly stay on their rank (dgc)",
                "train.on_nan", "set it to stop or continue, or remove dgc");
  }
  std::vector<VarId> gradients;
  for (const VarId parameter : build.backward.parameters) {
    const VarId gradient = build.program.gradient(parameter);
    if (gradient != kNoVar) gradients.push_back(gradient);
  }
  for (const VarId rows : build.rows) {
    const VarId gradient = build.program.gradient(rows);
    if (gradient != kNoVar) gradients.push_back(gradient);
  }
  if (gradients.empty()) return;
  const VarId found = append_check_finite(build.program, build.optimize, build.loss, gradients);
  if (!agreed) return;
  build.scaling.found_inf = found;
  build.skips_updates = on_nan == OnNan::kSkip;
}

// Training that leaves out one update after another does not train: the host reads the count.
void Strategy::append_skip_count(OnNan on_nan) {
  BuildContext& build = *build_;
  const bool scales = build.loss_scaling != kNoVar && on_nan != OnNan::kContinue;
  if (!scales && !build.skips_updates) return;
  // A constant scale repairs nothing, so each skipped update counts.
  const bool adapts = build.program.find("optimizer.good_steps") != kNoVar;
  const VarId skipped = build.program.state(kSkippedUpdatesName, {1}, Init(), DType::kInt64);
  build.program.append(
      build.optimize, "count_skipped_updates",
      {skipped, build.scaling.found_inf, build.loss, adapts ? build.loss_scaling : kNoVar},
      {skipped});
}

void Strategy::append_optimizer(VarId learning_rate, const Settings& settings, OnNan on_nan,
                                const TrainedFrom& trained_from) {
  FLEET_CHECK(build_ && build_->optimize < 0, "append one optimizer, after the backward pass");
  BuildContext& build = *build_;
  build.optimizer = settings;
  build.learning_rate = learning_rate;
  build.optimize = build.program.add_section("optimize", build.update_when);
  {
    const PassStepRecorder recorder("check_finite", build.program, context_);
    append_check(on_nan);
  }
  run(&MetaOptimizer::update);
  append_skip_count(on_nan);
  std::vector<VarId> parameters = build.backward.parameters;
  std::erase_if(parameters, [&](VarId parameter) {
    return build.updated_separately.contains(parameter) && !sparse_rows_.has(parameter);
  });
  {
    const PassStepRecorder recorder(build.optimizer.text("name"), build.program, context_);
    append_updates_by_phase(build.program, build.optimize, parameters, learning_rate,
                            build.optimizer, build.scaling, context_.seed, trained_from);
  }
  run(&MetaOptimizer::fuse_update);
  verify(build.program);
  for (const auto& part : parts_) part->finish(build);
}

void Strategy::before_step(HostStep& step) {
  for (const auto& part : parts_) part->before_step(step);
}

std::map<std::string, double> Strategy::measures() const {
  std::map<std::string, double> values;
  for (const auto& part : parts_) part->measure(values);
  return values;
}

}  // namespace fleet
