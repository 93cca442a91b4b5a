// strategy.auto: makes a job fit into the memory, by the predicted cost of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "store/store.h"
#include "train/explain.h"
#include "train/saved_batches.h"

namespace fleet {

// Facts that decide about micro-batches, besides the settings.
struct BatchFacts {
  bool own = false;  // the program makes its batches itself, so their size stays
  // The number of training samples, nullopt if it is unknown; null: it is. Called at most once.
  std::function<std::optional<int64_t>()> samples = {};
  std::optional<SavedBatches> saved = {};  // from the checkpoint that the job continues from
};

// Settings with which the job fits into memory: the fastest, or the first if the machine's rates
// are unknown. Keys that the user gave stay as they are, and so does what the job computes, apart
// from rounding: docs/how-to/explain.md has the rules. Builds the Program and the Plan of each
// candidate.
std::vector<StrategyChoice> choose_strategy(const ConfigTree& tree, const ExplainOptions& options,
                                            const BatchFacts& batches = {});

// The tree with these choices.
ConfigTree with_choices(const ConfigTree& tree, const std::vector<StrategyChoice>& choices);

// The ranks that choose together, at the start of a job.
struct ChoosingRanks {
  int rank = 0, ranks = 1, nodes = 1;
  int ranks_here = 1;        // on this rank's node
  bool own_batches = false;  // BatchFacts::own
  RunStart start = {};
  Device* device = nullptr;
  Communicator* compute = nullptr;  // for device memory; null in a job of one rank
  Communicator* control = nullptr;  // for host memory; null if `compute` is
  Store* store = nullptr;           // null in a job of one rank
};

// Returns the tree with the settings of choose_strategy(), equal on all ranks; `tree` itself unless
// strategy.auto is set and the job trains. Collective: rank 0 decides, for the rank with the least
// memory and by the rates in its cache, logs each choice, and tells the others through the Store.
ConfigTree choose_strategy_at_start(const ConfigTree& tree, const ChoosingRanks& ranks);

}  // namespace fleet
