// A job prepared for a device: Program, Plan and Executor of one rank.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/communicator_set.h"
#include "exec/executor.h"
#include "models/training.h"
#include "store/store.h"
#include "strategy/strategy.h"
#include "train/freezing.h"
#include "train/job.h"

namespace fleet {

struct BuiltProgram {
  Program program;
  Training training;
  VarId loss_scaling = kNoVar;  // float32 [1], a state; kNoVar: no loss scaling
  std::vector<VarId> keep;      // variables that the host reads
  std::unique_ptr<Strategy> strategy;
};

struct ProgramOptions {
  std::vector<Column> columns = {};        // the columns of the data (train/job_task.h)
  int rank = 0;                            // the rank that runs the Program
  int world = 1;                           // ranks of the job
  int nodes = 1;                           // number of nodes
  int servers = 0;                         // parameter servers of the job
  int64_t batch = 0;                       // samples per step and rank; 0: data.batch_size
  std::string backend = "cpu";             // decides the compute type of mixed precision
  std::vector<PassStep>* steps = nullptr;  // see PassContext
  // Lengths of rows of tokens that batches have (data/lengths.h), ascending to that of the columns;
  // empty: that one. For a Session.
  std::vector<int64_t> lengths = {};
  int phase = -1;  // the phase of training (train/freezing.h); -1: the last one
};

// The samples that a rank trains: part `part` of `parts`.
struct DataPart {
  int part = 0, parts = 1;
};
DataPart data_part(const Job& job, const ProgramOptions& options);

// Checks the strategy and the options of the device without building the Program. Errors kUsage and
// kUnsupported of build_program().
void check_job(const Job& job, const ProgramOptions& options);

// Builds and drops the first part of build_program(): the model, its loss and its metrics, which
// depend on the columns of the data. Errors of build_training(); a kUsage names data.image.
void build_network(const Job& job, const ProgramOptions& options);

// The whole Program of a job: model, backward, strategy, optimizer.
BuiltProgram build_program(const Job& job, const ProgramOptions& options);

// Its Plan, which takes the Program. device: null to plan without it. first: the Plan of other
// batches of the same job, whose parameters and states it shares.
Plan plan_built(BuiltProgram& built, const std::string& backend, Device* device,
                const Plan* first = nullptr);

// The Plans of a job for the other lengths of rows (ProgramOptions::lengths), the longest first,
// and then, in each of the earlier phases of training (train/freezing.h), the last first, for all
// lengths. They share the places of `first`, the Plan of the last phase for the longest rows.
// kUnsupported naming data.lengths or train.unfreeze_at if a strategy makes Programs that cannot
// share them.
std::vector<Plan> plan_others(const Job& job, const ProgramOptions& options, Plan& first,
                              Device* device);

// Puts the stage of a pipeline before each rank that the text names: "rank 3" is "stage 1 (rank 3)"
// of 2 stages. The text itself for a single stage.
std::string with_stages(const std::string& text, int stages);

class Session {
 public:
  // communicator: null in a job of one rank. kNoMemory, with the batch size and the length of rows
  // of tokens that would fit, if the device has too little memory.
  Session(const Job& job, const ProgramOptions& options, Device& device,
          Communicator* communicator);

  Executor& executor() { return *executor_; }
  // Selects the executor's Plan for this phase of training, and for batches of this length
  // (data::Batch::length). 0: the longest. Before the first call the last phase is selected.
  void select(int phase, int64_t length);
  void select_length(int64_t length) { select(phase_, length); }  // same phase
  const FreezingPhases& phases() const { return phases_; }
  // By GroupId of the Program; null for groups of one rank, and for groups without this rank.
  const std::vector<Communicator*>& communicators() const { return communicators_->all(); }
  const Training& training() const { return built_training_; }
  int stages() const { return strategy_->context().stages; }  // PassContext::stages
  int64_t merged_steps() const;                               // the steps of an update
  // The compute type of the forward part: amp's type if any of it uses that, else float32.
  DType precision() const;
  // Lets the strategy decide about the current training step.
  StepInfo prepare(StepInfo info, double learning_rate);
  std::map<std::string, double> strategy_measures() const { return strategy_->measures(); }
  // Every rank publishes its actions in its groups and compares them
  // (compare_collective_sequences()); kUsage naming the first rank that differs, and the
  // difference.
  void compare_plans(Store& store, std::chrono::milliseconds timeout) const;
  // Opens the connections of a pipeline on GPUs (train/open_links.h). All ranks call it.
  void open_links(Device& device);
  // Broadcasts rank 0's parameters and states, except per-rank states.
  void broadcast_all();
  // Broadcasts rank 0's running statistics (not the optimizer's states, which are equal).
  void broadcast_statistics();
  MetricSums read_metrics(bool evaluation);
  // The factor of the next step's loss; nullopt without loss scaling. Synchronizes.
  std::optional<double> read_loss_scaling();

 private:
  void broadcast(const std::vector<VarId>& vars);
  size_t bytes_with_batch(int64_t batch, int64_t length, const Job& job, Device& device,
                          Device* on) const;
  int64_t fitting_length(int64_t batch, const Job& job, Device& device) const;
  [[noreturn]] void explain_no_memory(const Error& cause, const PlannedMemory& planned,
                                      const Job& job, Device& device);

  ProgramOptions options_;
  std::vector<int64_t> lengths_;  // by the executor's Plan; empty: one length
  Communicator* communicator_;
  const FreezingPhases phases_;
  int phase_ = 0;  // selected
  int plans_ = 1;
  std::unique_ptr<CommunicatorSet> communicators_;
  Training built_training_;
  VarId loss_scaling_ = kNoVar;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace fleet
