#include "train/session.h"

#include "exec/backend.h"

namespace fleet {

void MetricSums::add(const MetricSums& other) {
  loss += other.loss;
  loss_weight += other.loss_weight;
  top1 += other.top1;
  topk += other.topk;
  weight += other.weight;
}

BuiltProgram build_program(const Job& job, const Shape& image, int world,
                           const std::string& backend, int nodes) {
  BuiltProgram built;
  Program& program = built.program;
  built.training =
      build_training(program, {.model = job.model_name,
                               .model_settings = job.model,
                               .batch = job.data.integer("batch_size"),
                               .image = image,
                               .label_smoothing = job.train.number("label_smoothing")});
  PassContext context{.world_size = world, .nodes = nodes, .low_types = {}, .no_low_type = {}};
  context.low_types = low_precision_types(backend, &context.no_low_type);
  const Strategy strategy = check_strategy(strategy_from(job.strategy), context);
  built.communication = strategy.communication;
  const BackwardResult backward =
      apply_strategy(program, strategy, built.training.forward, built.training.loss, context);
  append_optimizer(program, strategy, backward, built.training.learning_rate, job.optimizer,
                   context);
  built.loss_scaling = backward.loss_scaling;
  const Training& training = built.training;
  built.keep = {training.loss, training.training_metrics.losses, training.training_metrics.counts,
                training.evaluation_metrics.losses, training.evaluation_metrics.counts};
  return built;
}

Session::Session(const Job& job, const Shape& image, const SessionOptions& options, Device& device,
                 Communicator* communicator)
    : options_(options), communicator_(communicator) {
  BuiltProgram built = build_program(job, image, options.world, options.backend, options.nodes);
  communicators_ = std::make_unique<CommunicatorSet>(
      communicator, built.communication.communicators, built.communication.group_size);
  built_training_ = built.training;
  loss_scaling_ = built.loss_scaling;
  Plan plan = make_plan(std::move(built.program), built.keep,
                        {.backend = options.backend, .initial_layouts = {}, .device = &device});
  executor_ = std::make_unique<Executor>(std::move(plan), device, communicators_->all());
  executor_->initialize(options.seed);
  stream_ = device.make_stream("");
}

void Session::compare_plans(Store& store, std::chrono::milliseconds timeout) const {
  const auto key = [](int rank) { return "plan/" + std::to_string(rank); };
  const std::string mine = std::to_string(executor_->plan().hash());
  store.set(key(options_.rank), mine);
  for (int rank = 0; rank < options_.world; ++rank) {
    if (store.get(key(rank), timeout) == mine) continue;
    throw Error(ErrorCode::kUsage,
                "rank " + std::to_string(rank) + " has another plan than rank " +
                    std::to_string(options_.rank),
                {},
                "start all ranks with the same job file, overrides and version of fleetrun, on "
                "machines of one kind");
  }
}

void Session::broadcast(const std::vector<VarId>& vars) {
  if (!communicator_) return;
  for (VarId id : vars) {
    const Argument argument = executor_->argument(id);
    const size_t count = argument.bytes() / size_of(argument.dtype);
    communicator_->broadcast({argument.data, count, argument.dtype}, 0, *stream_);
  }
  stream_->synchronize();
  communicator_->throw_if_failed();
}

void Session::broadcast_all() {
  std::vector<VarId> vars;
  const Program& program = executor_->program();
  for (VarId id = 0; id < program.var_count(); ++id) {
    if (is_saved(program.var(id))) vars.push_back(id);
  }
  broadcast(vars);
}

void Session::broadcast_statistics() {
  // A state that the forward section writes is a statistic of the model.
  std::vector<VarId> vars;
  const Program& program = executor_->program();
  for (const Op& op : program.ops()) {
    if (op.section != built_training_.forward) continue;
    for (VarId id : op.outputs) {
      if (id != kNoVar && program.var(id).kind == VarKind::kState) vars.push_back(id);
    }
  }
  executor_->synchronize();
  broadcast(vars);
}

MetricSums Session::read_metrics(bool evaluation) {
  const Metrics& metrics =
      evaluation ? built_training_.evaluation_metrics : built_training_.training_metrics;
  float losses[2], counts[3];
  executor_->read(metrics.losses, losses);
  executor_->read(metrics.counts, counts);
  return {losses[0], losses[1], counts[0], counts[1], counts[2]};
}

std::optional<double> Session::read_loss_scaling() {
  if (loss_scaling_ == kNoVar) return std::nullopt;
  return executor_->values<float>(loss_scaling_)[0];
}

}  // namespace fleet
