// A job made ready to run on a device: Program, Plan and Executor of one rank.
#pragma once

#include <memory>
#include <optional>

#include "exec/communicator_set.h"
#include "exec/executor.h"
#include "models/training.h"
#include "store/store.h"
#include "strategy/strategy.h"
#include "train/job.h"
#include "train/metric_sums.h"

namespace fleet {

struct SessionOptions {
  int rank = 0, world = 1;
  int nodes = 1;
  uint64_t seed = 1;
  std::string backend = "cpu";
};

struct BuiltProgram {
  Program program;
  Training training;
  VarId loss_scaling = kNoVar;  // float32 [1], a state; kNoVar: the loss is not scaled
  std::vector<VarId> keep;      // what the host reads
  std::unique_ptr<Strategy> strategy;
};

struct ProgramOptions {
  Shape image;                  // channels, height, width of the samples
  int rank = 0;                 // that the Program is for
  int world = 1;                // ranks of the job
  int nodes = 1;                // that they are on
  int64_t batch = 0;            // samples a step and rank; 0: data.batch_size
  std::string backend = "cpu";  // decides in which type mixed precision computes
};

// Which of the samples a rank trains: part `part` of `parts`.
struct DataPart {
  int part = 0, parts = 1;
};
DataPart data_part(const Job& job, const ProgramOptions& options);

// Checks what is checked without making the Program: the strategy, and the device's options.
// kUsage, kUnsupported, as build_program() has them.
void check_job(const Job& job, const ProgramOptions& options);

// The whole Program of a job: model, backward, strategy, optimizer.
BuiltProgram build_program(const Job& job, const ProgramOptions& options);

class Session {
 public:
  // communicator: null in a job of one rank. kNoMemory, with what would fit, where the device has
  // too little.
  Session(const Job& job, const Shape& image, const SessionOptions& options, Device& device,
          Communicator* communicator);

  Executor& executor() { return *executor_; }
  // By GroupId of the Program; null for groups of one rank, and those that this rank is not in.
  const std::vector<Communicator*>& communicators() const { return communicators_->all(); }
  const Training& training() const { return built_training_; }
  // What the forward part computes in: amp's type, where any of it does, else float32.
  DType precision() const;
  // Lets the strategy decide about the training step at hand.
  StepInfo prepare(StepInfo info, double learning_rate);
  std::map<std::string, double> strategy_measures() const { return strategy_->measures(); }
  // Every rank publishes what it does in its groups and compares (compare_agreements()); kUsage
  // naming the first rank that differs, and in what.
  void compare_plans(Store& store, std::chrono::milliseconds timeout) const;
  // Parameters and states of rank 0 to all, but for states of each rank.
  void broadcast_all();
  // Rank 0's running statistics to all (not the optimizer's states, which are alike).
  void broadcast_statistics();
  MetricSums read_metrics(bool evaluation);
  // What the next step's loss is scaled with; nothing where it is not. Synchronizes.
  std::optional<double> read_loss_scaling();

 private:
  void broadcast(const std::vector<VarId>& vars);
  [[noreturn]] void explain_no_memory(const Error& cause, const PlannedMemory& planned,
                                      const Job& job, const Shape& image, const Device& device);

  SessionOptions options_;
  Communicator* communicator_;
  std::unique_ptr<CommunicatorSet> communicators_;
  Training built_training_;
  VarId loss_scaling_ = kNoVar;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace fleet
