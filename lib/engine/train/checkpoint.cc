#include "train/checkpoint.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/exchange_folders.h"
#include "base/file.h"
#include "base/file_status.h"
#include "base/number_text.h"
#include "base/sync.h"
#include "base/text.h"
#include "base/thread.h"
#include "optim/ema.h"
#include "train/checkpoint_content.h"
#include "train/checkpoint_folders.h"
#include "train/checkpoint_state.h"
#include "train/merged_rows.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kShareFolder[] =
    "set train.output to a folder that all nodes share: each rank saves its own states there";

std::string name_of_part(int rank) { return format_printf("rank_%05d.safetensors", rank); }

std::string name_of_shard(int rank) { return format_printf("shard_%05d.safetensors", rank); }

// "'a.residual', 'b.residual', 'c.residual' and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  return join_first(quoted, kShown);
}

// Without the states of loss scaling, which may start again.
std::vector<std::string> names_of_rank_states(const Program& program) {
  std::vector<std::string> names;
  for (const VarId id : rank_states(program)) names.push_back(program.var(id).name);
  std::erase_if(names, is_of_loss_scaling);
  return names;
}

// Checks that the parts of a checkpoint of `ranks` ranks (0: no parts) fit this job. Returns
// whether this rank has a part to read.
bool check_ranks(const std::string& folder, int ranks, const Program& program, const JobRank& own) {
  std::vector<std::string> names = names_of_rank_states(program);
  const std::string anew =
      "checkpoint.weights to its model.safetensors and checkpoint.resume to \"no\", to start "
      "a new run from the weights";
  const auto count = [](int n) { return std::to_string(n) + (n == 1 ? " rank" : " ranks"); };
  if (names.empty() && ranks > 0) {
    const std::string part = folder + "/" + name_of_part(0);
    const bool exists = path_exists(part);
    if (exists) {
      for (const auto& [name, tensor] : open_safetensors(part, Checksum::kIfThere).tensors) {
        if (!is_of_loss_scaling(name)) names.push_back(name);
      }
    }
    if (exists && names.empty()) return ranks == own.world;
    throw Error(ErrorCode::kUsage,
                "holds states of each of " + count(ranks) + " (" + some_of(names) +
                    ") that this job does not need",
                folder, "set the strategy that it was trained with, or " + anew);
  }
  if (!names.empty() && ranks == 0) {
    throw Error(ErrorCode::kUsage,
                "holds no per-rank states; this job needs " + some_of(names) + " of each of " +
                    count(own.world),
                folder, "set the strategy that it was trained with, or " + anew);
  }
  if (!names.empty() && ranks != own.world) {
    throw Error(ErrorCode::kUsage,
                "holds states of each of " + count(ranks) + " (" + some_of(names) +
                    "), this job has " + count(own.world),
                folder, "start with " + count(ranks) + ", or set " + anew);
  }
  return ranks > 0;
}

// Identifies a part, so that a part copied to the wrong place is detected.
std::map<std::string, std::string> part_metadata(const JobRank& own, int64_t step) {
  return {{"format", "pt"},
          {"step", std::to_string(step)},
          {"rank", std::to_string(own.rank)},
          {"ranks", std::to_string(own.world)}};
}

TensorFile read_part(const std::string& folder, const JobRank& own, int64_t step,
                     const Program& program, Checksum checksum, std::vector<MergedRows>* rows) {
  const std::string path = folder + "/" + name_of_part(own.rank);
  const std::string use = "use a complete checkpoint, in a folder that all nodes share";
  if (!path_exists(path)) throw DamagedFile("the file does not exist", path, use);
  TensorFile part = read_safetensors(path, checksum);
  if (part.metadata != part_metadata(own, step)) {
    throw Error(ErrorCode::kUsage,
                "does not belong to rank " + std::to_string(own.rank) + " of " +
                    std::to_string(own.world) + " at step " + std::to_string(step),
                path, use);
  }
  *rows = take_merged_rows(&part, path);
  check_fit(program, part, CheckpointFile::kRank, path);
  return part;
}

// Returns a line if only the checkpoint or only the job has averages.
std::string other_averages(bool held, const Program& program) {
  if (held == has_averages(program)) return "";
  return held ? "its average of the weights is ignored: train.ema.decay and train.swa.from_epoch "
                "are 0"
              : "it has no average of the weights: the average starts as a copy of the weights";
}

}  // namespace

std::string begin_checkpoint(const std::string& root, int64_t step) {
  make_directories(root);
  const std::string aside = root + "/" + name_of_step(step) + ".part";
  fs::remove_all(aside);
  make_directories(aside);
  return aside;
}

CheckpointValues values_of(Executor& executor, const JobRank& own, bool copied) {
  CheckpointValues values;
  if (own.rank == 0) {
    values.model = gather(executor, CheckpointFile::kModel, copied);
    values.optimizer = gather(executor, CheckpointFile::kOptimizer, copied);
    if (has_averages(executor.program())) {
      values.ema = gather(executor, CheckpointFile::kAverage, copied);
    }
  }
  if (!rank_states(executor.program()).empty()) {
    values.part = gather(executor, CheckpointFile::kRank, copied);
  }
  // Ranks that hold copies of another rank's variables have empty shards.
  if (is_sharded(executor.program())) {
    const bool owns = owns_variables(executor.program(), own);
    values.shard = owns ? gather(executor, CheckpointFile::kShard, copied, own.rank) : TensorFile();
  }
  return values;
}

// Writes a rank's own file into the folder of an unfinished checkpoint. Returns its size.
static size_t write_part(const std::string& root, int64_t step, const std::string& name,
                         TensorFile part, const JobRank& own) {
  const std::string aside = root + "/" + name_of_step(step) + ".part";
  if (!is_folder(aside)) {
    throw Error(ErrorCode::kIo,
                "the folder that rank 0 created is not visible to rank " + std::to_string(own.rank),
                aside, kShareFolder);
  }
  part.metadata = part_metadata(own, step);
  const std::string path = aside + "/" + name;
  write_safetensors(path, part);
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) throw Error(ErrorCode::kIo, "cannot read it back: " + error.message(), path);
  return bytes;
}

size_t save_rank_part(const std::string& root, int64_t step, const CheckpointValues& values,
                      const JobRank& own) {
  return write_part(root, step, name_of_part(own.rank), values.part.value(), own);
}

// Checks that rank 0 sees what the ranks wrote; `name`: names a rank's file.
static void check_parts(const std::string& aside, std::string (*name)(int),
                        std::span<const size_t> part_bytes) {
  for (size_t rank = 0; rank < part_bytes.size(); ++rank) {
    const std::string path = aside + "/" + name(static_cast<int>(rank));
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) {
      throw Error(ErrorCode::kIo,
                  "rank " + std::to_string(rank) + " wrote it, rank 0 does not see it", path,
                  kShareFolder);
    }
    if (bytes != part_bytes[rank]) {
      throw Error(ErrorCode::kIo,
                  "rank " + std::to_string(rank) + " wrote " + std::to_string(part_bytes[rank]) +
                      " bytes, rank 0 sees " + std::to_string(bytes),
                  path, kShareFolder);
    }
  }
}

// Adds what the ranks own. It is read while the files are written, one variable at a time.
static CheckpointValues with_shards(const std::string& aside, CheckpointValues values, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const TensorFile shard =
        open_safetensors(aside + "/" + name_of_shard(rank), Checksum::kRequired);
    add_shard(shard, CheckpointFile::kModel, &values.model);
    add_shard(shard, CheckpointFile::kOptimizer, &values.optimizer);
    if (values.ema) add_shard(shard, CheckpointFile::kAverage, &*values.ema);
  }
  return values;
}

std::string finish_checkpoint(const std::string& root, const TrainingPosition& position,
                              const CheckpointValues& own_values, const Keep& keep,
                              std::span<const size_t> part_bytes,
                              std::span<const size_t> shard_bytes) {
  const std::string folder = folder_of_step(root, position.step);
  const std::string aside = folder + ".part";
  check_parts(aside, name_of_part, part_bytes);
  check_parts(aside, name_of_shard, shard_bytes);
  const CheckpointValues values =
      with_shards(aside, own_values, static_cast<int>(shard_bytes.size()));
  Thread other("save", [&] { write_safetensors(aside + "/" + kOptimizerFile, values.optimizer); });
  const auto write_weights = [&](const char* name, TensorFile file) {
    write_card(position.card, &file.metadata);
    write_safetensors(aside + "/" + name, file);
  };
  write_weights(kModelFile, values.model);
  if (values.ema) write_weights(kAverageFile, *values.ema);
  other.join();
  StateFacts facts{.ranks = static_cast<int>(part_bytes.size())};
  if (values.more) facts.needs = fs::path(values.more(aside)).filename();
  for (size_t rank = 0; rank < shard_bytes.size(); ++rank) {
    fs::remove(aside + "/" + name_of_shard(static_cast<int>(rank)));
  }
  write_file_atomically(aside + "/" + kStateFile, state_text(position, facts));
  sync_folder(aside);
  // If a run saved this step before, exchange both: a complete checkpoint always exists.
  if (path_exists(folder)) {
    exchange_folders(aside, folder);
  } else if (::rename(aside.c_str(), folder.c_str()) != 0) {
    throw_errno("cannot rename", folder);
  }
  sync_folder(root);
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  // Only older ones: the one just saved stays, whatever else is in the folder.
  remove_old_checkpoints(root, position.step, keep);
  return folder;
}

std::string save_on_all_ranks(const std::string& root, const TrainingPosition& position,
                              Executor& executor, int keep, const JobRank& own,
                              RankCoordinator& control) {
  const CheckpointValues values = values_of(executor, own, false);
  std::string folder;
  const auto save = [&] {
    folder = save_on_all_ranks(root, position, values, {.newest = keep}, own, control);
    return 0.0;
  };
  if (values.in_parts()) {
    save();
  } else {
    control.all_succeed("write a checkpoint", save);
  }
  return folder;
}

// For a Program with per-rank or sharded states. Returns the folder on rank 0.
static std::string save_with_parts(const std::string& root, const TrainingPosition& position,
                                   const CheckpointValues& values, const Keep& keep,
                                   const JobRank& own, RankCoordinator& control) {
  std::string folder;
  control.all_succeed("begin a checkpoint", [&] {
    if (own.rank == 0) begin_checkpoint(root, position.step);
    return 0.0;
  });
  // Returns the sizes by rank.
  const auto write = [&](const char* what, const std::optional<TensorFile>& file,
                         const std::string& name) -> std::vector<size_t> {
    if (!file) return {};
    const std::vector<double> bytes = control.all_succeed(what, [&] {
      return static_cast<double>(write_part(root, position.step, name, *file, own));
    });
    return {bytes.begin(), bytes.end()};
  };
  const std::vector<size_t> part_bytes =
      write("write its part of a checkpoint", values.part, name_of_part(own.rank));
  const std::vector<size_t> shard_bytes =
      write("write its shard of a checkpoint", values.shard, name_of_shard(own.rank));
  control.all_succeed("finish a checkpoint", [&] {
    if (own.rank == 0) {
      folder = finish_checkpoint(root, position, values, keep, part_bytes, shard_bytes);
    }
    return 0.0;
  });
  return folder;
}

std::string save_on_all_ranks(const std::string& root, const TrainingPosition& position,
                              const CheckpointValues& values, const Keep& keep, const JobRank& own,
                              RankCoordinator& control) {
  const bool leads = own.rank == 0;
  try {
    if (values.in_parts()) return save_with_parts(root, position, values, keep, own, control);
    if (!leads) return "";
    begin_checkpoint(root, position.step);
    return finish_checkpoint(root, position, values, keep, {});
  } catch (...) {
    std::error_code ignored;  // the remains are not a valid checkpoint
    if (leads) fs::remove_all(root + "/" + name_of_step(position.step) + ".part", ignored);
    throw;
  }
}

void check_folder_is_shared(const std::string& folder, const JobRank& own,
                            RankCoordinator& control) {
  const bool leads = own.rank == 0;
  std::string probe;
  const auto name = [&](double number) {
    return folder + "/shared_" + std::to_string(static_cast<int64_t>(number));
  };
  const double number = control.all_succeed("write to the output folder", [&] {
    if (!leads) return 0.0;
    // A number that no other run takes: below 2^53 until the year 2255.
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto own_number =
        static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    probe = name(own_number);
    write_file_atomically(probe, "");
    return own_number;
  })[0];
  try {
    control.all_succeed("see rank 0's output folder", [&] {
      if (path_exists(name(number))) return 0.0;
      throw Error(ErrorCode::kUsage,
                  "rank " + std::to_string(own.rank) + " does not see what rank 0 wrote", folder,
                  kShareFolder);
    });
  } catch (...) {
    std::error_code ignored;
    if (leads) fs::remove(probe, ignored);
    throw;
  }
  std::error_code ignored;
  if (leads) fs::remove(probe, ignored);
}

// Refuses other folders, such as that of a run, for which it names the newest checkpoint.
static void check_is_checkpoint(const std::string& folder) {
  if (!is_folder(folder)) {
    throw Error(ErrorCode::kUsage, "no such checkpoint folder", folder,
                "give the path of a folder such as step_00000120, or auto for the newest");
  }
  if (path_exists(folder + "/" + kStateFile)) return;
  for (const std::string& root : {folder, folder + "/checkpoints"}) {
    const std::optional<std::string> newest = latest_checkpoint(root);
    if (!newest) continue;
    throw Error(ErrorCode::kUsage, "has checkpoints, but is not one", folder,
                "give the path of one of them: the newest is " + *newest);
  }
}

TrainingPosition load_checkpoint(const std::string& folder, const std::string& model,
                                 Executor& executor, const LoadOptions& options) {
  check_is_checkpoint(folder);
  StateFacts facts;
  TrainingPosition position = parse_state(folder + "/" + kStateFile, &facts);
  check_needed(folder, facts);
  const Checksum checksum = facts.version == 1 ? Checksum::kIfThere : Checksum::kRequired;
  const auto read = [&](const char* file) {
    const std::string path = folder + "/" + file;
    if (!path_exists(path)) {
      throw DamagedFile("the file does not exist", path, "use a complete checkpoint");
    }
    // A rank of a sharded job may not have the memory for all of it.
    const bool opens = is_sharded(executor.program());
    return opens ? open_safetensors(path, checksum) : read_safetensors(path, checksum);
  };
  if (position.model != model) {
    throw Error(
        ErrorCode::kUsage,
        "is a checkpoint of the model '" + position.model + "', the job trains '" + model + "'",
        folder, "use one of the same model, or set checkpoint.resume to \"no\"");
  }
  const Program& program = executor.program();
  const bool has_part = check_ranks(folder, facts.ranks, program, options.own);
  TensorFile weights = read(kModelFile);
  position.card = read_card(weights.metadata);
  TensorFile states = read(kOptimizerFile);
  check_fit(program, weights, CheckpointFile::kModel, folder + "/" + kModelFile);
  check_fit(program, states, CheckpointFile::kOptimizer, folder + "/" + kOptimizerFile,
            options.may_lack);
  const bool averaged = states.tensors.contains(kEmaUpdates);
  TensorFile averages;
  if (averaged && has_averages(program)) averages = read(kAverageFile);
  if (!averages.tensors.empty()) {
    check_fit(program, averages, CheckpointFile::kAverage, folder + "/" + kAverageFile);
  }
  TensorFile part;
  std::vector<MergedRows> rows;
  if (has_part) part = read_part(folder, options.own, position.step, program, checksum, &rows);
  std::string other = drop_others(states, part, program);
  if (other.empty()) other = other_averages(averaged, program);
  if (options.note) *options.note = other;
  if (options.accept) options.accept(position);
  if (options.merged_rows) *options.merged_rows = std::move(rows);
  scatter(weights, CheckpointFile::kModel, executor);
  scatter(averages, CheckpointFile::kAverage, executor);
  scatter(states, CheckpointFile::kOptimizer, executor);
  scatter(part, CheckpointFile::kRank, executor);
  return position;
}

}  // namespace fleet
