#include "train/session.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/log.h"
#include "comm/recorded_communicator.h"
#include "exec/backend.h"
#include "exec/shared_places.h"
#include "models/losses.h"
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
#include "train/open_links.h"
#include "train/rank_state.h"
#include "train/second_pass.h"
#include "train/served_job.h"
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

// Writes the values that the job gives and no checkpoint holds.
static void set_constants(const Job& job, const ProgramOptions& options, Executor& executor) {
  if (const VarId weights = executor.program().find(kPositiveWeights); weights != kNoVar) {
    const std::vector<double> given = job.train.numbers("positive_weights");
    const std::vector<float> values(given.begin(), given.end());
    executor.write(weights, std::as_bytes(std::span(values)));
  }
  if (!has_teacher(job)) return;
  const Teacher teacher = teacher_of(job);
  for (const std::string& line :
       load_teacher(teacher, image_of_columns(options.columns), executor)) {
    if (options.rank == 0) spdlog::info("{}: {}", teacher.weights, line);
  }
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

std::string with_stages(const std::string& text, int stages) {
  if (stages <= 1) return text;
  constexpr std::string_view kRank = "rank ";
  std::string named;
  size_t begin = 0;
  for (size_t at = text.find(kRank); at != std::string::npos; at = text.find(kRank, begin)) {
    const char* digits = text.data() + at + kRank.size();
    int rank = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), rank);
    const size_t behind = end - text.data();
    named += text.substr(begin, at - begin);
    const std::string whole = text.substr(at, behind - at);
    const bool numbered = error == std::errc() && rank >= 0;
    named += numbered ? "stage " + std::to_string(rank % stages) + " (" + whole + ")" : whole;
    begin = std::max(behind, at + kRank.size());
  }
  return named + text.substr(begin);
}

Session::Session(const Job& job, const ProgramOptions& options, Device& device,
                 Communicator* communicator)
    : options_(options), communicator_(communicator), phases_(job), phase_(phases_.last()) {
  BuiltProgram built = build_program(job, options);
  communicators_ = std::make_unique<CommunicatorSet>(built.program.groups(), communicator);
  built_training_ = built.training;
  loss_scaling_ = built.loss_scaling;
  Plan plan = plan_built(built, options.backend, &device);
  strategy_ = std::move(built.strategy);
  const PlannedMemory planned = plan.memory();
  std::vector<Plan> plans = plan_others(job, options, plan, &device);
  plans.insert(plans.begin(), std::move(plan));
  plans_ = static_cast<int>(plans.size());
  lengths_.assign(options.lengths.rbegin(), options.lengths.rend());
  try {
    executor_ = std::make_unique<Executor>(std::move(plans), device, communicators_->all());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNoMemory) throw;
    explain_no_memory(error, planned, job, device);
  }
  executor_->initialize(static_cast<uint64_t>(job.train.integer("seed")));
  set_constants(job, options, *executor_);
  stream_ = device.make_stream("");
}

void Session::select(int phase, int64_t length) {
  size_t at = 0;
  if (!lengths_.empty()) {
    const auto found = std::ranges::find(lengths_, length == 0 ? lengths_[0] : length);
    FLEET_CHECK(found != lengths_.end(), "a batch of length " + std::to_string(length));
    at = found - lengths_.begin();
  }
  FLEET_CHECK(phase >= 0 && phase < phases_.count(), "no such phase");
  const size_t before = static_cast<size_t>(phases_.last() - phase);
  executor_->select(static_cast<int>(before * std::max<size_t>(lengths_.size(), 1) + at));
  phase_ = phase;
}

int64_t Session::merged_steps() const {
  const Program& program = executor_->program();
  return program.sections()[program.find_section("optimize")].when.every;
}

DType Session::precision() const {
  const Program& program = executor_->program();
  for (const Op& op : program.ops()) {
    if (op.section != built_training_.forward) continue;
    for (VarId id : op.writes()) {
      const DType dtype = program.var(id).dtype;
      if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return dtype;
    }
  }
  return DType::kFloat32;
}

StepInfo Session::prepare(StepInfo info, double learning_rate) {
  HostStep step{.info = info, .learning_rate = learning_rate, .read = [this](VarId id) {
                  return executor_->values<float>(id);
                }};
  strategy_->before_step(step);
  return info;
}

void Session::compare_plans(Store& store, std::chrono::milliseconds timeout) const {
  const auto of_plan = [&](size_t i) {
    return executor_->plan(static_cast<int>(i)).collective_sequences(options_.rank);
  };
  CollectiveSequences all = of_plan(0);
  const size_t lengths = std::max<size_t>(lengths_.size(), 1);
  for (size_t i = 1; i < static_cast<size_t>(plans_); ++i) {
    const size_t phase = phases_.last() - i / lengths;
    std::string of =
        lengths_.empty() ? "" : "length " + std::to_string(lengths_[i % lengths]) + ": ";
    if (i >= lengths) of = "phase " + std::to_string(phase) + " of train.unfreeze_at: " + of;
    for (const auto& [name, sequence] : of_plan(i)) {
      all[name].ranks = sequence.ranks;
      for (const std::string& operation : sequence.operations) {
        all[name].operations.push_back(of + operation);
      }
    }
  }
  compare_collective_sequences(all, options_.rank, options_.world, store, timeout);
}

void Session::open_links(Device& device) {
  if (backend_def(options_.backend).uses_host_memory) return;  // hosts do not block there
  const CollectivePurpose purpose("opening a connection");
  const CollectivePurposeScope scope(purpose);
  fleet::open_links(executor_->program(), communicators(), device, *stream_);
}

void Session::broadcast(const std::vector<VarId>& vars) {
  if (!communicator_) return;
  for (VarId id : vars) {
    const Argument argument = executor_->argument(id);
    const size_t count = argument.bytes() / size_of(argument.dtype);
    const CollectivePurpose purpose(executor_->program().var(id).name);
    const CollectivePurposeScope scope(purpose);
    communicator_->broadcast({argument.data, count, argument.dtype}, 0, *stream_);
  }
  stream_->synchronize();
  communicator_->throw_if_failed();
}

void Session::broadcast_all() { broadcast(shared_vars(executor_->program())); }

void Session::broadcast_statistics() {
  executor_->synchronize();
  broadcast(shared_statistics(executor_->program(), built_training_.forward));
}

MetricSums Session::read_metrics(bool evaluation) {
  MetricSums read(built_training_.metrics);
  const MetricTable& table = *built_training_.metrics;
  for (const TrainingSum& sum :
       evaluation ? built_training_.evaluation_sums : built_training_.training_sums) {
    const std::vector<float> values = executor_->values<float>(sum.var);
    for (size_t i = 0; i < values.size(); ++i) {
      read.sums()[static_cast<size_t>(table.sum_index(sum.parts[i]))] = values[i];
    }
  }
  return read;
}

std::optional<double> Session::read_loss_scaling() {
  if (loss_scaling_ == kNoVar) return std::nullopt;
  return executor_->values<float>(loss_scaling_)[0];
}

}  // namespace fleet
