// Checkpoints: one folder per step, "<root>/step_00000120", with model.safetensors (parameters and
// running statistics under the model's names), optimizer.safetensors (the optimizer's states) and
// state.json (the training position); if the job averages its weights (optim/ema.h) also
// ema.safetensors, with the averages under the model's names. Each file has a CRC-32C checksum. If
// a Program has per-rank states (Var::per_rank), there is also one file per rank,
// rank_00000.safetensors and so on, and "ranks" in state.json is their number. Variables that ranks
// own (Var::owner) are merged in the ordinary files: sharding leaves no trace in a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/source.h"
#include "exec/executor.h"
#include "exec/parameter_exchange.h"
#include "train/model_card.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"
#include "train/safetensors.h"
#include "train/weight_settings.h"

namespace fleet {

// The best value of a metric so far.
struct BestValue {
  std::string metric;  // "": no metric is followed
  double value = 0;
  int64_t step = -1;  // -1: none yet

  bool operator==(const BestValue&) const = default;
};

// The results of the evaluations so far.
struct EvaluationRecord {
  BestValue kept;              // for checkpoint.keep_best
  BestValue stopping;          // for train.early_stopping
  int64_t without = 0;         // evaluations since the last improvement
  int64_t observed_step = -1;  // the last evaluation's

  bool operator==(const EvaluationRecord&) const = default;
};

// The training position. A resumed run continues with batch `batch` of epoch `epoch`.
struct TrainingPosition {
  int64_t step = 0;  // completed training steps
  int64_t epoch = 0;
  int64_t batch = 0;  // completed batches of this epoch
  uint64_t seed = 0;
  int64_t global_batch = 0;  // samples per step, over all ranks
  int64_t merged_steps = 1;  // steps of an update
  std::string model;
  std::string task = "image_classification";  // what checkpoints without one were trained for
  std::vector<double> schedule = {};          // Schedule::state()
  EvaluationRecord evaluations = {};
  ModelCard card = {};          // in the metadata of model.safetensors
  std::string validation = {};  // JobData::validation()
  std::string data = {};        // JobData::order(); "": unknown
  data::TokenizerIdentity tokenizer = {};
  WeightSettings settings = {};  // empty: unknown
};

// Files of a checkpoint that other processes write.
struct MoreFiles {
  std::function<void()> cut = nullptr;  // on all ranks, after the steps whose state is saved
  // On all ranks, then: adds values to this rank's part, if it has one.
  std::function<void(TensorFile* part)> part = nullptr;
  // On rank 0, from any thread: writes that state into the folder; "": the checkpoint has failed.
  // Returns the folder of another checkpoint in the same root that it needs; "": none.
  std::function<std::string(const std::string& folder)> write = nullptr;
};

// The part of a checkpoint that a rank writes.
struct CheckpointValues {
  TensorFile model, optimizer;                     // rank 0
  std::optional<TensorFile> ema;                   // rank 0, if the Program has averages
  std::optional<TensorFile> part;                  // if the Program has per-rank states
  std::optional<TensorFile> shard = std::nullopt;  // what this rank owns, if the Program is sharded
  // Rank 0: writes more files into the folder, before the checkpoint is complete; null: none.
  // Returns as MoreFiles::write().
  std::function<std::string(const std::string& folder)> more = nullptr;
  bool in_parts() const { return part || shard; }
};
// The values after the steps so far, for which this waits. copied: if false, the values are the
// executor's own memory where the host can read it, and are valid until its next run.
CheckpointValues values_of(Executor& executor, const JobRank& own, bool copied);

// The checkpoints to keep, with those that they need.
struct Keep {
  int newest = 0;          // how many of the newest; 0: all
  int64_t also_step = -1;  // also the one of this step; -1: none
};

// Writes a checkpoint of every parameter and state under a temporary name and renames it when all
// of it is on the disk; then removes the checkpoints not to be kept. Collective: all ranks call it
// with the same position. Returns on all ranks when the checkpoint is on the disk: the folder on
// rank 0, "" elsewhere. If the Program has per-rank states, every rank writes its part; if any rank
// fails, all fail and no checkpoint is created.
// kIo: a disk error, or a part that rank 0 does not see because the nodes share no folder;
// kPeerLost: another rank failed. The overload with values may be called from any thread, if no
// other thread uses the control.
std::string save_on_all_ranks(const std::string& root, const TrainingPosition& position,
                              Executor& executor, int keep, const JobRank& own,
                              RankCoordinator& control);
std::string save_on_all_ranks(const std::string& root, const TrainingPosition& position,
                              const CheckpointValues& values, const Keep& keep, const JobRank& own,
                              RankCoordinator& control);

// Checks that all ranks see the same folder before training starts; all ranks call it. kUsage on
// ranks that do not see what rank 0 writes to this folder, kPeerLost on the others.
void check_folder_is_shared(const std::string& folder, const JobRank& own,
                            RankCoordinator& control);

// The steps of save_on_all_ranks(). Each starts after the previous one has ended on all ranks: rank
// 0 creates "step_00000120.part" and returns it; each rank writes its part into it, if it has any,
// and returns the size in bytes, and likewise its shard; rank 0 checks that it sees all parts and
// shards (part_bytes and shard_bytes, by rank), writes the rest, which includes the content of the
// shards, removes the shards and renames.
std::string begin_checkpoint(const std::string& root, int64_t step);
size_t save_rank_part(const std::string& root, int64_t step, const CheckpointValues& values,
                      const JobRank& own);
std::string finish_checkpoint(const std::string& root, const TrainingPosition& position,
                              const CheckpointValues& values, const Keep& keep,
                              std::span<const size_t> part_bytes,
                              std::span<const size_t> shard_bytes = {});

// The newest complete checkpoint below `root` of a step below `below`; nullopt if none.
std::optional<std::string> latest_checkpoint(const std::string& root, int64_t below = kForever);
// The same, but passes over checkpoints in which a file is missing, truncated or damaged; parts of
// ranks are not read. kUsage for a checkpoint of another version.
std::optional<std::string> newest_complete_checkpoint(const std::string& root);
// The step of such a folder, from its name; -1: not a checkpoint.
int64_t step_of_checkpoint(const std::string& folder);
// "<root>/step_00000120".
std::string folder_of_step(const std::string& root, int64_t step);

// If a root holds checkpoints, renames it to "<root>.1" (or the next free number), so that a new
// run does not mix with an earlier one; returns the new path.
std::optional<std::string> set_checkpoints_aside(const std::string& root);

// A position without its model card, as text and back. where: for errors. DamagedFile for other
// text.
std::string position_text(const TrainingPosition& position);
TrainingPosition position_from_text(const std::string& text, const std::string& where);
// The position of a checkpoint, without the model card. DamagedFile if state.json is missing or
// damaged, kUsage if it is of another version.
TrainingPosition read_position(const std::string& folder);
// The same; nullopt if state.json cannot be used.
std::optional<TrainingPosition> position_of_checkpoint(const std::string& folder);

struct LoadOptions {
  JobRank own;
  std::string* note = nullptr;  // a line about differences; "" if none
  // This rank's sums of gradients of rows, of a checkpoint within an update.
  std::vector<MergedRows>* merged_rows = nullptr;
  // Called before anything changes; if it throws, loading stops.
  std::function<void(const TrainingPosition&)> accept;
  // States of the optimizer that it may lack: they keep their values. Null: none.
  std::function<bool(const std::string& state)> may_lack = {};
};

// Reads a checkpoint into the executor. DamagedFile if it is truncated, lacks a file or does not
// match its checksums; kUsage if it is of another model or version, or lacks something. After an
// error nothing has changed. Three kinds of states may be missing or extra: those of loss scaling
// (for example when a float16 job continues in float32) and gradients that sharding merges: missing
// ones keep their values, extra ones are ignored; and averages of the weights, which start as the
// weights if missing. note: a line about such differences, "" if none. Per-rank states
// come from this rank's part; kUsage if the checkpoint has another number of ranks, or if only one
// of checkpoint and job has such states, other than those of loss scaling.
TrainingPosition load_checkpoint(const std::string& folder, const std::string& model,
                                 Executor& executor, const LoadOptions& options = {});

}  // namespace fleet
