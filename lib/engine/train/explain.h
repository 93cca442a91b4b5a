// Estimates of a job before it starts: memory, bytes between ranks, and the time of a step.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost/step_time.h"
#include "train/session.h"

namespace fleet {

struct ExplainOptions {
  int rank = 0, ranks = 1, nodes = 1;
  int threads = 1;              // cores of a rank
  std::string backend = "cpu";  // the job's device's, present or not
  Device* device = nullptr;     // null: it is not here
  // Rates of the device; without them there are no times.
  std::optional<MachineRates> rates = {};
  JobTopology topology = {};         // ranks and nodes are set from the above
  std::vector<Column> columns = {};  // the data's; empty: as far as the settings tell
  // Memory of a rank's process besides the job: program, libraries.
  size_t process_bytes = 0;
  // Memory and seconds of a core for the data, if they could be opened.
  std::optional<size_t> input_bytes = {};
  std::optional<double> input_seconds = {};  // a batch
  size_t available_bytes = 0;                // for one rank; 0: unknown
};

struct ExplainedGroup {
  std::string name;                // "data parallel: ranks 0 1"
  std::string transport;           // "shm"
  std::vector<std::string> types;  // its collectives', in order
  std::vector<double> bytes;       // one per collective
};

// Bytes of one rank.
struct ExplainedMemory {
  PlannedMemory planned = {};
  size_t communication = 0;  // other ranks' memory that this process maps
  size_t kernels = 0;        // prepared operations of the libraries
  size_t input = 0;          // batches made ahead, the source
  size_t start = 0;          // for a moment, while initial values are drawn
  size_t process = 0;        // program and libraries
  size_t total() const {
    return planned.total() + communication + kernels + input + start + process;
  }
};

// The job as it is, or with one more option.
struct JobCost {
  ExplainedMemory memory = {};
  std::optional<StepTime> time = {};         // for one step
  double images_per_second = 0;              // all ranks together; 0: unknown
  int64_t batch = 0;                         // samples a rank and step
  int64_t length = 0;                        // tokens of a sample; 0: it has none
  std::vector<std::string> strategies = {};  // Strategy::names()
  bool statistics = false;  // computed over batches, which micro-batches would change
};

// The strategies that act in a job before a change of its settings, and no longer after it.
std::vector<std::string> switched_off(const JobCost& before, const JobCost& after);

struct WhatIf {
  std::string option;                  // "recompute"
  std::string strategy;                // its name in Strategy::names()
  std::vector<std::string> overrides;  // as for --set
  std::string obstacle;                // why it cannot be, or would change nothing; then no cost
  JobCost cost = {};
};

// The Plan for one of data.lengths. The Plans share the memory of the longest.
struct LengthCost {
  int64_t length = 0;
  PlannedMemory planned = {};
  std::optional<StepTime> time = {};
};

// A setting that strategy.auto chose, or why it chose none.
struct StrategyChoice {
  std::string override;  // "strategy.fuse_grad_size_in_MB=8"; "": a finding, nothing to set
  std::string reason;    // with the number it rests on
};

struct Explanation {
  std::string model, backend;
  int ranks = 1, nodes = 1, threads = 1;
  int64_t batch = 0;
  int64_t parameters = 0, trainable = 0;  // numbers, not bytes
  std::vector<PassStep> steps = {};       // the build's, in order
  int operations = 0;                     // in the Plan
  int training_operations = 0;            // that run in a training step
  std::vector<ExplainedGroup> groups = {};
  JobCost cost = {};                     // with rows of the longest length
  std::vector<LengthCost> lengths = {};  // ascending; empty: batches have one length
  std::optional<double> input_seconds = {};
  size_t available_bytes = 0;
  // If the job does not fit: the largest batch that would; 0: no batch.
  std::optional<int64_t> fitting_batch = {};
  std::optional<MachineRates> rates = {};
  JobTopology topology = {};
  std::vector<WhatIf> what_if = {};
  std::vector<StrategyChoice> choices = {};  // made by strategy.auto
};

// The Program and Plan of one rank. Errors of make_job(), build_program() and plan_program().
Explanation explain(const ConfigTree& tree, const ExplainOptions& options);
// Fills in Explanation::what_if by making the Program and Plan of each variant.
void explain_what_if(const ConfigTree& tree, const ExplainOptions& options, Explanation* explained);

// The cost of a job as the other functions count it.
JobCost cost_of_job(const Job& job, const ExplainOptions& options);

// Where the band of a step comes from, in one sentence.
std::string band_source();

// At most 80 columns.
std::string explanation_text(const Explanation& explained);
// One JSON object on one line; docs/how-to/explain.md has its keys. "text" is explanation_text().
std::string explanation_json(const Explanation& explained);

}  // namespace fleet
