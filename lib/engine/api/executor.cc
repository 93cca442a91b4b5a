#include "api/executor.h"

#include <algorithm>
#include <filesystem>

#include "api/recipe.h"
#include "api/serve.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/random.h"
#include "optim/schedule.h"
#include "ps/tables/row_index.h"
#include "tensor/float16.h"
#include "train/class_weights.h"
#include "train/device_settings.h"
#include "train/divergence.h"
#include "train/evaluation.h"
#include "train/initial_weights.h"
#include "train/resume_checks.h"
#include "train/step_runner.h"

namespace fleet {
namespace {

void check_schedule(const Job& job, int64_t batches_per_epoch) {
  if (batches_per_epoch > 0 || !counts_epochs(job.schedule)) return;
  throw Error(ErrorCode::kUsage, "depends on the number of steps of an epoch, which is unknown",
              "learning_rate",
              "give own_data() the batches_per_epoch, or use a schedule that counts steps");
}

std::shared_ptr<ProgramResources> open(const Job& job, const Recipe& recipe, const World& world) {
  auto opened = std::make_shared<ProgramResources>();
  DeviceChoice choice =
      choose_job_device(job, world.rank == 0 || get_env("FLAGS_selected_gpus").has_value());
  for (const std::string& line : choice.device->description()) spdlog::info("{}", line);
  opened->device = std::move(choice.device);
  opened->communicators = make_job_communicators(job, world, *opened->device);
  if (!recipe.own_image) {
    opened->data = open_data(job, *opened->device, {world.rank, world.size}, world.store.get());
  }
  return opened;
}

}  // namespace

ProgramExecutor::ProgramExecutor(const Worker& worker, const Model& model, const Values& keys)
    : world_(worker.world()) {
  Recipe& recipe = *model.recipe();
  if (recipe.opened) {
    throw Error(ErrorCode::kUsage, "the model has an executor already", "ProgramExecutor");
  }
  if (world_.server >= 0) {
    throw Error(ErrorCode::kUsage, "this process is a parameter server", "ProgramExecutor",
                "call init_server() and run_server() where Worker::is_server() holds");
  }
  if (world_.replacement > 0) {
    throw Error(ErrorCode::kUnsupported,
                "a program with its own training loop cannot take the place of a lost trainer",
                "ProgramExecutor", "leave out --replace_trainers; --max_restart restarts the job");
  }
  const ConfigTree tree = tree_of(recipe, keys, world_);
  job_ = make_job(tree);
  if (recipe.own_image) check_schedule(job_, recipe.batches_per_epoch);
  opened_ = open(job_, recipe, world_);
  job_ = make_job_at_start(tree, world_, *opened_->device, opened_->communicators, true);
  runner_ = std::make_unique<StepRunner>(
      job_, opened_->data.get(), *opened_->device,
      StepRunnerOptions{.rank = world_.rank,
                        .world = world_.size,
                        .nodes = world_.node_count(),
                        .communicator = opened_->communicators.compute.get(),
                        .control = opened_->communicators.control.get(),
                        .store = world_.store.get(),
                        .own = {.columns = image_columns(recipe.own_image.value_or(Shape{})),
                                .batches = std::max<int64_t>(recipe.batches_per_epoch, 1)},
                        .servers = servers_of(job_, world_, *opened_->device)});
  batch_size_ = job_.data.integer("batch_size");
  runner_->begin();
  recipe.opened = opened_;
}

ProgramExecutor::~ProgramExecutor() = default;

// The columns of a batch have its size; those that a program may omit are empty or have it.
void ProgramExecutor::check_sizes(const data::Batch& batch) {
  const std::vector<std::string> made = {"weight", "sample_key", "class_weights", "own_share"};
  const bool mixes = !batch.own_shares.empty();
  runner_->session().select_length(batch.length);
  for (const TrainingFeed& feed : runner_->session().training().feeds) {
    if (feed.name == "learning_rate" || feed.mean_of) continue;
    const bool may_lack =
        std::ranges::find(made, feed.name) != made.end() || (feed.name == "other_label" && !mixes);
    const Argument fed = runner_->session().executor().argument(feed.var);
    const size_t count = batch.column(feed.name).size() / size_of(fed.dtype);
    const auto wanted = static_cast<size_t>(fed.shape.elements());
    if (count == wanted || (may_lack && count == 0)) continue;
    throw Error(ErrorCode::kUsage,
                "the batch has " + std::to_string(count) + " values of " + feed.name +
                    " instead of " + std::to_string(wanted),
                "ProgramExecutor", "give the span of all samples");
  }
}

// A program's own batches may omit weights and keys.
void ProgramExecutor::complete(const data::Batch& batch) {
  if (batch.size != batch_size_) {
    throw Error(ErrorCode::kUsage, "a batch of " + std::to_string(batch.size) + " samples",
                "ProgramExecutor",
                "the executor was built for batches of " + std::to_string(batch_size_));
  }
  check_sizes(batch);
  if (weighs_classes(job_) && batch.class_weights.empty()) {
    throw Error(ErrorCode::kUsage, "the batch has no class weights", "train.class_weights",
                "take batches from a Loader, or set Batch::class_weights");
  }
  batch_ = batch;
  if (batch_.weights.empty()) {
    weights_.assign(batch_size_, 1);
    batch_.weights = weights_;
  }
  if (runner_->session().training().feed("own_share") != kNoVar && batch_.own_shares.empty()) {
    own_shares_.assign(batch_size_, 1);
    batch_.own_shares = own_shares_;
    batch_.other_labels = batch_.labels;
  }
  if (!batch_.keys.empty()) return;
  keys_.resize(batch_size_);
  const TrainingPosition& at = runner_->position();
  const int64_t first = at.step * at.global_batch + world_.rank * batch_size_;
  for (int64_t i = 0; i < batch_size_; ++i) {
    keys_[i] = data::sample_key(at.seed, 0, first + i);
  }
  batch_.keys = keys_;
}

void ProgramExecutor::train(const data::Batch& batch, bool fetch) {
  complete(batch);
  rate_ = own_rate_ ? *own_rate_ : runner_->schedule().learning_rate(steps());
  runner_->train(batch_, fetch, rate_);
  opened_->steps = steps();
}

void ProgramExecutor::run(const data::Batch& batch) { train(batch, false); }

std::vector<double> ProgramExecutor::run(const data::Batch& batch,
                                         const std::vector<std::string>& fetch_list) {
  for (const std::string& name : fetch_list)
    fetched(name, {});  // checks the names before anything changes
  train(batch, !fetch_list.empty());
  if (fetch_list.empty()) return {};
  check_for_nan();
  const MetricSums sums = runner_->session().read_metrics(false);
  std::vector<double> values;
  for (const std::string& name : fetch_list) values.push_back(fetched(name, sums));
  return values;
}

double ProgramExecutor::fetched(const std::string& name, const MetricSums& sums) {
  if (name == "learning_rate") return rate_;
  if (name == "loss_scaling") return runner_->session().read_loss_scaling().value_or(1);
  std::vector<std::string> known;
  for (const MetricDef& metric : runner_->session().training().metrics->metrics) {
    if (metric.name == name && !metric.collected) return sums.value(name);
    if (!metric.collected) known.push_back(metric.name);
  }
  known.insert(known.end(), {"learning_rate", "loss_scaling"});
  throw Error(ErrorCode::kUsage, "cannot fetch '" + name + "'", "ProgramExecutor",
              suggestion(name, known));
}

MetricSums ProgramExecutor::evaluate(Loader& test) {
  if (runner_->apart()) runner_->meet(0);  // the servers then have the updates of all
  test.start_epoch(0);
  const MetricSums sums =
      fleet::evaluate(*runner_, {.next_batch = [&] { return test.next(); }})->sums;
  const std::string line = runner_->observe(sums);
  if (!line.empty() && world_.rank == 0) spdlog::info("{}", line);
  return sums;
}

int64_t ProgramExecutor::steps() const { return runner_->position().step; }

bool ProgramExecutor::agree_to_stop(bool stop) { return runner_->control().agree_to_stop(stop); }

void ProgramExecutor::stop_worker() { runner_->finish(); }

void ProgramExecutor::wait() { runner_->executor().synchronize(); }

void ProgramExecutor::end_for_nan(const std::string& what, int64_t step, int suspect,
                                  const std::string& next) {
  if (job_.train.integer("compare_ranks_every") > 0) {
    DivergenceCheck(runner_->executor(), *opened_->device, runner_->control(),
                    {world_.rank, world_.size})
        .compare_before_end(steps(), {what, suspect}, runner_->finite_check().ranks_apart());
  }
  throw NotFiniteError(what, "step " + std::to_string(step), next);
}

void ProgramExecutor::check_for_nan() {
  constexpr const char* kNext = "lower the learning rate, or look at the data";
  FiniteCheck& check = runner_->finite_check();
  const std::optional<BadUpdates> bad = check.poll();
  if (bad) {
    if (!check.skips()) end_for_nan(bad->text(), bad->step, bad->suspect(), kNext);
    if (world_.rank == 0) spdlog::warn("step {}: {}", bad->step, bad->left_out());
  }
  const std::string why = check.stuck(job_.train.integer("max_skipped_updates"));
  if (!why.empty()) end_for_nan(why, steps(), bad ? bad->suspect() : -1, kNext);
}

std::string ProgramExecutor::save(const std::string& root, int keep) {
  wait();
  check_for_nan();
  if (runner_->apart()) runner_->meet(0);
  runner_->sync_ranks(StepRunner::SyncFor::kCheckpoint);
  const std::string bad = runner_->finite_check().bad_state();
  if (!bad.empty()) {
    end_for_nan("'" + bad + "' is not finite", steps(), -1, "resume from an earlier checkpoint");
  }
  const JobRank own{world_.rank, world_.size};
  const MoreFiles tables = runner_->table_files();
  if (!tables.write) {
    return save_on_all_ranks(root, runner_->position(), runner_->executor(), keep, own,
                             runner_->control());
  }
  return save_with(tables, root, keep, own);
}

// With what other processes write.
std::string ProgramExecutor::save_with(const MoreFiles& files, const std::string& root, int keep,
                                       const JobRank& own) {
  CheckpointValues values = values_of(runner_->executor(), own, /*copied=*/false);
  files.cut();
  if (values.part) files.part(&*values.part);
  bool written = false;
  values.more = [&](const std::string& folder) {
    written = true;
    return files.write(folder);
  };
  std::string folder;
  const auto save = [&] {
    try {
      folder = save_on_all_ranks(root, runner_->position(), values, {.newest = keep}, own,
                                 runner_->control());
    } catch (...) {
      if (own.rank == 0 && !written) files.write("");  // ends the cut
      throw;
    }
    return 0.0;
  };
  if (values.in_parts()) {
    save();
  } else {
    runner_->control().all_succeed("write a checkpoint", save);
  }
  return folder;
}

void ProgramExecutor::shrink(int64_t threshold) {
  constexpr int64_t kMost = ps::IndexWord::kMaxAge;
  if (threshold < 1 || threshold > kMost) {
    throw Error(ErrorCode::kUsage, "the threshold is " + std::to_string(threshold), "shrink",
                "give a number of calls from 1 to " + std::to_string(kMost));
  }
  wait();
  if (runner_->shrink_tables(threshold)) return;
  throw Error(ErrorCode::kUnsupported, "there is no table on parameter servers", "shrink",
              "name one in the keys, {\"tables.embedding.rule.name\", \"adagrad\"}, or leave "
              "the call out");
}

TrainingPosition ProgramExecutor::load(const std::string& folder) {
  wait();
  runner_->control().all_succeed("load the checkpoint", [&] {
    std::string from = folder;
    if (!std::filesystem::exists(folder + "/state.json")) {
      const auto latest = latest_checkpoint(folder);
      if (!latest) throw Error(ErrorCode::kNotFound, "there is no checkpoint", folder);
      from = *latest;
    }
    std::optional<int64_t> batches;
    if (opened_->data) batches = opened_->data->train().batches();
    const auto accept = [&](const TrainingPosition& found) {
      check_goes_on(found, runner_->position(), batches, from);
    };
    std::vector<MergedRows> merged_rows;
    const TrainingPosition saved = load_checkpoint(
        from, job_.model_name, runner_->executor(),
        {.own = {world_.rank, world_.size}, .merged_rows = &merged_rows, .accept = accept});
    const std::string changed = runner_->resume(saved, from, std::move(merged_rows));
    if (!changed.empty() && world_.rank == 0) spdlog::warn("{}", changed);
    return static_cast<double>(steps());
  });
  runner_->begin();
  opened_->steps = steps();
  return runner_->position();
}

void ProgramExecutor::load_weights(const std::string& path) {
  wait();
  runner_->sync_ranks(StepRunner::SyncFor::kCheckpoint);  // begin() broadcasts rank 0's states
  runner_->control().all_succeed("load the weights", [&] {
    const WeightsOptions options{.skip = job_.checkpoint.texts("weights_skip")};
    for (const std::string& line : fleet::load_weights(path, options, runner_->executor())) {
      if (world_.rank == 0) spdlog::info("{}: {}", path, line);
    }
    return 0.0;
  });
  runner_->begin();
}

std::vector<float> ProgramExecutor::values(const std::string& name) {
  const Program& program = runner_->executor().program();
  const VarId id = program.find(name);
  const auto& sums = runner_->session().training().training_sums;
  const bool kept = id != kNoVar && (program.var(id).kind == VarKind::kParameter ||
                                     program.var(id).kind == VarKind::kState ||
                                     std::ranges::find(sums, id, &TrainingSum::var) != sums.end());
  const bool narrow = kept && program.var(id).dtype == DType::kBFloat16;
  if (!kept || (program.var(id).dtype != DType::kFloat32 && !narrow)) {
    throw Error(ErrorCode::kUsage,
                "'" + name + "' is not a parameter, state or metric in float32 or bfloat16",
                "ProgramExecutor", "program_text() lists the variables");
  }
  if (program.var(id).remote) {
    throw Error(ErrorCode::kUsage,
                "'" + name + "' is on rank " + std::to_string(program.var(id).owner) +
                    " (strategy.sharding)",
                "ProgramExecutor", "save a checkpoint, which has all of them");
  }
  if (!narrow) return runner_->executor().values<float>(id);
  const std::vector<BFloat16> values = runner_->executor().values<BFloat16>(id);
  return {values.begin(), values.end()};
}

std::string ProgramExecutor::program_text() const {
  return print_text(runner_->executor().program());
}

std::string ProgramExecutor::device() const { return opened_->device->name(); }

}  // namespace fleet
