#include "train/session.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/log.h"
#include "comm/recorded_communicator.h"
#include "exec/backend.h"
#include "models/losses.h"
#include "train/freezing.h"
#include "train/job_task.h"
#include "train/open_links.h"
#include "train/rank_state.h"
#include "train/teacher.h"

namespace fleet {

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
