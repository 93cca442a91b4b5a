// Checkpoints: one folder a step, "<root>/step_00000120", with model.safetensors (parameters and
// running statistics under the model's names), optimizer.safetensors (the optimizer's states) and
// state.json (where training is); where the job averages its weights (optim/ema.h) also
// ema.safetensors, with the averages under the model's names. Each has a checksum, CRC-32C. Where a
// Program has states of each rank (Var::per_rank), also rank_00000.safetensors and so on, one a
// rank, and their number in state.json as "ranks".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/control.h"
#include "train/evaluation_record.h"
#include "train/model_card.h"
#include "train/rank_state.h"
#include "train/safetensors.h"

namespace fleet {

// Where training is. A run resumed from it goes on with batch `batch` of epoch `epoch`.
struct TrainingPosition {
  int64_t step = 0;  // training steps done
  int64_t epoch = 0;
  int64_t batch = 0;  // batches of this epoch done
  uint64_t seed = 0;
  int64_t global_batch = 0;  // samples a step, over all ranks
  std::string model;
  std::vector<double> schedule = {};  // Schedule::state()
  EvaluationRecord evaluations = {};
  ModelCard card = {};          // in the metadata of model.safetensors
  std::string validation = {};  // JobData::validation()
};

// What a rank writes of a checkpoint.
struct CheckpointValues {
  TensorFile model, optimizer;     // rank 0
  std::optional<TensorFile> ema;   // rank 0, where the Program has averages
  std::optional<TensorFile> part;  // where the Program has states of each rank
};
// As they are after the steps so far, for which this waits. copied: false: they are the executor's
// own memory where the host can read it, until its next run.
CheckpointValues values_of(Executor& executor, const JobRank& own, bool copied);

// Which checkpoints stay.
struct Keep {
  int newest = 0;          // so many; 0: all
  int64_t also_step = -1;  // and the one of this step
};

// Writes a checkpoint of every parameter and state, aside and renamed when all of it is on the
// disk; then removes those that do not stay. Returns its folder. kIo. Of a Program without states
// of each rank.
std::string save_checkpoint(const std::string& root, const TrainingPosition& position,
                            Executor& executor, int keep);

// The same by all ranks together, which all call it, with the same position; returns on all when it
// is on the disk, the folder on rank 0 and "" elsewhere. Where the Program has states of each rank,
// every rank writes its part, and a failure of any rank is one of all: the checkpoint is not there
// then. kIo: the disk, or a part that rank 0 does not see, as where nodes share no folder;
// kPeerLost: another rank failed. With values any thread may call it, if no other uses the control.
std::string save_on_all_ranks(const std::string& root, const TrainingPosition& position,
                              Executor& executor, int keep, const JobRank& own, Control& control);
std::string save_on_all_ranks(const std::string& root, const TrainingPosition& position,
                              const CheckpointValues& values, const Keep& keep, const JobRank& own,
                              Control& control);

// Before hours of training end in a checkpoint whose parts are on different disks: all ranks call
// it. kUsage where a rank does not see what rank 0 writes to this folder, kPeerLost on the others.
void check_folder_is_shared(const std::string& folder, const JobRank& own, Control& control);

// The steps of save_on_all_ranks(), each after the one before has ended on all ranks: rank 0 makes
// "step_00000120.part" and returns it; each rank writes its part into it and returns the part's
// bytes; rank 0 checks that it sees all of them (part_bytes, by rank), writes the rest and renames.
std::string begin_checkpoint(const std::string& root, int64_t step);
size_t save_rank_part(const std::string& root, int64_t step, const CheckpointValues& values,
                      const JobRank& own);
std::string finish_checkpoint(const std::string& root, const TrainingPosition& position,
                              const CheckpointValues& values, const Keep& keep,
                              std::span<const size_t> part_bytes);

// The newest complete checkpoint in the folder root of a step below this one, if there is one.
std::optional<std::string> latest_checkpoint(const std::string& root, int64_t below = kForever);
// Of such a folder, by its name; -1: it is none.
int64_t step_of_checkpoint(const std::string& folder);
// "<root>/step_00000120".
std::string folder_of_step(const std::string& root, int64_t step);

// Renames a root that holds checkpoints to "<root>.1" (or the next free number), so that a new run
// does not mix with an earlier one's; returns where they are then.
std::optional<std::string> set_checkpoints_aside(const std::string& root);

// Reads a checkpoint into the executor. DamagedFile where it is truncated, lacks a file or is not
// what its checksums say; kUsage where it is of another model or version, or lacks something:
// nothing is changed then. Only the states of loss scaling may differ, as where float16
// goes on in float32: those it lacks keep their values, those the program has not are left out;
// and averages of the weights, which begin as the weights where it has none. note: a line about
// that, "" where nothing differs. States of each rank come from this rank's part; kUsage where the
// checkpoint's number of ranks is another, or only one of both has such states.
TrainingPosition load_checkpoint(const std::string& folder, const std::string& model,
                                 Executor& executor, std::string* note = nullptr,
                                 const JobRank& own = {});

}  // namespace fleet
