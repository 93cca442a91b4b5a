// From a job to its Programs and Plans.
#include <algorithm>

#include "base/log.h"
#include "exec/backend.h"
#include "exec/shared_places.h"
#include "optim/layer_decay.h"
#include "strategy/served_tables.h"
#include "train/averaged_weights.h"
#include "train/device_prefetcher.h"
#include "train/device_settings.h"
#include "train/finite_check.h"
#include "train/freezing.h"
#include "train/id_range.h"
#include "train/job_task.h"
#include "train/language_weights.h"
#include "train/second_pass.h"
#include "train/served_job.h"
#include "train/session.h"
#include "train/teacher.h"
#include "train/tensorboard_log.h"

namespace fleet {

static PassContext context_of(const Job& job, const ProgramOptions& options) {
  PassContext context{.rank = options.rank,
                      .ranks = options.world,
                      .nodes = options.nodes,
                      .servers = options.servers,
                      .batch = job.data.integer("batch_size"),
                      .backend = options.backend,
                      .host_memory = backend_def(options.backend).uses_host_memory,
                      .backend_passes = passes_of_backend(options.backend),
                      .optimizer = job.optimizer.text("name"),
                      .weights = to_dtype(job.train.text("weights_dtype")),
                      .seed = static_cast<uint64_t>(job.train.integer("seed")),
                      .steps = options.steps};
  context.low_types = low_precision_types(options.backend, &context.no_low_type);
  return context;
}

DataPart data_part(const Job& job, const ProgramOptions& options) {
  const PassContext context = divide(strategy_from(job.strategy), context_of(job, options));
  const std::vector<int> ranks = context.data_parallel_ranks();
  const auto own = std::find(ranks.begin(), ranks.end(), options.rank);
  FLEET_CHECK(own != ranks.end(), "a rank without training samples");
  return {static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size())};
}

void check_job(const Job& job, const ProgramOptions& options) {
  if (options.servers > 0) check_served_job(job);
  device_options(job);
  Strategy(strategy_from(job.strategy), context_of(job, options));
}

// Reports options of Paddle's layers that have another effect here, or none.
static void log_choices(const Job& job, const ProgramOptions& options) {
  if (options.rank != 0) return;
  if (!job.train.boolean("numeric_stable_mode")) {
    spdlog::info(
        "train.numeric_stable_mode has no effect: the loss is always computed from the distances "
        "to the largest logit");
  }
  for (const auto& [option, note] : backend_def(options.backend).false_notes) {
    if (job.model.has(option) && !job.model.boolean(option)) spdlog::info("{}", note);
  }
  for (const std::string& note : language_model_notes(job)) spdlog::warn("{}", note);
}

// Takes the tables that parameter servers hold out of the Program. Returns the feeds of their rows.
static std::vector<VarId> serve_tables(const Job& job, const ProgramOptions& options,
                                       Program* program) {
  if (job.tables.empty()) return {};
  // An evaluation alone reads the rows of a checkpoint.
  if (options.servers == 0 && !job.train.boolean("evaluate_only")) {
    throw Error(ErrorCode::kUsage, "tables need parameter servers, and the job has none", "tables",
                "start it with --server_num or --servers, or remove the section");
  }
  if (const std::string key = key_of_averages(job); !key.empty()) {
    throw Error(ErrorCode::kUnsupported, "rows of tables on parameter servers are not averaged",
                key, "set it to 0, or remove the section tables");
  }
  fleet::serve_tables(*program, requests_of(job));
  std::vector<VarId> rows;
  for (const ServedTable& table : served_tables(*program)) rows.push_back(table.rows);
  return rows;
}

static ModelParts parts_of(const Training& training) {
  ModelParts parts{.blocks = training.blocks, .devices = training.devices};
  for (const TrainingFeed& feed : training.feeds) {
    if (feed.per_sample) parts.batch.feeds.push_back(feed.var);
  }
  for (const auto* sums : {&training.training_sums, &training.evaluation_sums}) {
    for (const TrainingSum& sum : *sums) parts.batch.sums.push_back(sum.var);
  }
  parts.batch.rows = training.collected;
  return parts;
}

// Appends the model, its loss and its metrics. An error of the model also gives the size of the
// images, and the key that decides it.
static Training append_network(Program& program, const Job& job, const ProgramOptions& options,
                               int64_t micro_batches) {
  const int64_t batch = options.batch > 0 ? options.batch : job.data.integer("batch_size");
  try {
    TrainingOptions training = training_options(job, std::max<int64_t>(batch / micro_batches, 1),
                                                options.columns, feeds_bytes(job, options.backend));
    training.micro_batches = micro_batches;
    return build_training(program, training);
  } catch (const Error& error) {
    const Shape image = image_of_columns(options.columns);
    const std::string& where = error.where();
    const bool of_key = where.starts_with("model.") || where.starts_with("train.");
    if (error.code() != ErrorCode::kUsage || of_key) throw;
    if (image.rank() == 0) throw;
    throw Error(error.code(), error.failure(), error.where(),
                (error.next().empty() ? "" : error.next() + "; ") + "the images (data.image) are " +
                    image.text());
  }
}

void build_network(const Job& job, const ProgramOptions& options) {
  Program program;
  append_network(program, job, options, 1);
}

// A number of a step's samples is not known for the later steps of an update.
static void check_merging_of(const Training& training, const Program& program) {
  if (program.sections()[program.find_section("optimize")].when.every == 1) return;
  for (const TrainingFeed& feed : training.feeds) {
    if (!feed.mean_of) continue;
    throw Error(ErrorCode::kUnsupported,
                "gradient_merge adds up the losses of several steps, and '" + feed.name +
                    "' divides the loss of each",
                "strategy.gradient_merge",
                "take larger batches instead, or remove what weighs them, as train.class_weights");
  }
}

BuiltProgram build_program(const Job& job, const ProgramOptions& options) {
  log_choices(job, options);
  if (options.servers > 0) check_served_job(job);
  BuiltProgram built;
  built.strategy =
      std::make_unique<Strategy>(strategy_from(job.strategy), context_of(job, options));
  Strategy& strategy = *built.strategy;
  Program& program = built.program;
  built.training = append_network(program, job, options, strategy.context().micro_batches);
  distil(job, options, &built);
  const std::vector<VarId> rows = serve_tables(job, options, &program);
  check_id_range(job, program);
  const FreezingPhases phases(job);
  phases.check(strategy.context(), strategy.names());
  const std::vector<std::string> lines = phases.lines_at_start(program);
  const int phase = options.phase < 0 ? phases.last() : options.phase;
  const TrainedFrom trained_from = phases.apply(program, phase);
  for (const std::string& line : lines) {
    if (options.rank == 0) spdlog::info("{}", line);
  }
  const std::string layers =
      set_layer_rates(program, built.training.forward, built.training.blocks, job.optimizer);
  if (!layers.empty() && options.rank == 0) spdlog::info("{}", layers);
  ModelParts parts = parts_of(built.training);
  parts.rows = rows;
  for (const auto& [parameter, from] : trained_from) {
    if (from > phase) parts.trained_later.insert(parameter);
  }
  const BackwardResult& backward = strategy.append_backward(program, built.training.forward,
                                                            built.training.loss, std::move(parts));
  append_second_pass(job, options.rank, backward, &built);
  strategy.append_optimizer(built.training.feed("learning_rate"), job.optimizer, on_nan_of(job),
                            trained_from);
  check_merging_of(built.training, program);
  phases.check_placement(program);
  average_weights(job, options.rank, &built);
  built.loss_scaling = backward.loss_scaling;
  const Training& training = built.training;
  built.keep = {training.loss};
  for (const auto* sums : {&training.training_sums, &training.evaluation_sums}) {
    for (const TrainingSum& sum : *sums) built.keep.push_back(sum.var);
  }
  built.keep.insert(built.keep.end(), training.collected.begin(), training.collected.end());
  if (job.train.boolean("tensorboard_gradients")) {
    for (const VarId gradient : gradients_of(program)) built.keep.push_back(gradient);
  }
  built.keep.insert(built.keep.end(), strategy.keep().begin(), strategy.keep().end());
  return built;
}

Plan plan_built(BuiltProgram& built, const std::string& backend, Device* device,
                const Plan* first) {
  PlanOptions options{.backend = backend, .device = device};
  if (first) options.initial_layouts = lasting_layouts(*first, built.program);
  return plan_program(std::move(built.program), built.keep, options);
}

static std::vector<Plan> plan_other_lengths(const Job& job, const ProgramOptions& options,
                                            Plan& longest, Device* device) {
  if (options.lengths.size() < 2) return {};
  const Silence silence;  // the longest has logged
  std::vector<Plan> plans;
  plans.push_back(std::move(longest));
  for (size_t i = options.lengths.size() - 1; i-- > 0;) {
    ProgramOptions shorter = options;
    shorter.columns = at_length(options.columns, options.lengths[i]);
    shorter.steps = nullptr;
    BuiltProgram built = build_program(job, shorter);
    plans.push_back(plan_built(built, options.backend, device, &plans[0]));
  }
  try {
    share_places(plans);
  } catch (const Error& error) {
    throw Error(error.code(), error.failure(), "data.lengths",
                "remove data.lengths, or the strategy that depends on the length");
  }
  longest = std::move(plans[0]);
  plans.erase(plans.begin());
  return plans;
}

std::vector<Plan> plan_others(const Job& job, const ProgramOptions& options, Plan& first,
                              Device* device) {
  std::vector<Plan> plans = plan_other_lengths(job, options, first, device);
  SharedEnds ends;
  for (int phase = FreezingPhases(job).last(); phase-- > 0;) {
    const Silence silence;  // the last phase has logged
    ProgramOptions earlier = options;
    earlier.phase = phase;
    earlier.steps = nullptr;
    BuiltProgram built = build_program(job, earlier);
    Plan longest = plan_built(built, options.backend, device, &first);
    try {
      share_some_places(first, &longest, &ends);
    } catch (const Error& error) {
      throw Error(error.code(), error.failure(), "train.unfreeze_at",
                  "remove it, or the strategy whose variables depend on the trained parameters");
    }
    std::vector<Plan> shorter = plan_other_lengths(job, earlier, longest, device);
    plans.push_back(std::move(longest));
    std::ranges::move(shorter, std::back_inserter(plans));
  }
  return plans;
}

}  // namespace fleet
