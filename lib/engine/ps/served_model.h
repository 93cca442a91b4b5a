// The facts that servers and their clients take from a trainer's Program: its parameters, their
// gradients and states, and the operations that update them. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"
#include "ps/placement.h"

namespace fleet::ps {

// A parameter that servers update. Names are the variables' in the trainer's Program.
struct ServedParameter {
  std::string name;
  int64_t elements = 0;
  std::string gradient;
  DType gradient_dtype = DType::kFloat32;
  bool accumulated = false;         // the gradient is a state of gradient_merge
  bool whole = false;               // its update needs all elements
  std::vector<std::string> states;  // the update rule's, in its order; float32
  std::string average;              // for train.ema; "": none
};

// A variable that servers hold whole.
struct ServedVar {
  std::string name;
  DType dtype = DType::kFloat32;
  int64_t elements = 1;
  size_t bytes() const { return static_cast<size_t>(elements) * size_of(dtype); }
};

// A norm of several parameters' gradients (optimizer.clip=global_norm).
struct SharedNorm {
  int op = 0;                   // the index of the operation that computes its square
  std::vector<int> parameters;  // indices, in the order of the sum
};

struct ServedModel {
  std::vector<ServedParameter> parameters;
  // States of one element that the operations update, such as the number of updates. Every server
  // has all of them.
  std::vector<ServedVar> counters;
  // All else that a checkpoint holds and ranks share: running statistics, frozen parameters. One
  // server keeps each.
  std::vector<ServedVar> kept;
  // The inputs of check_finite: the loss, and gradients. Empty: no check.
  std::vector<std::string> checked;
  bool counts_skips = false;  // count_skipped_updates is part of the Program
  std::vector<SharedNorm> shared_norms;
  std::vector<int> ops;  // indices of the operations that servers run
  std::string rule;      // their types and attributes, and the parameters

  std::vector<PlacedParameter> placed_parameters() const;
  std::vector<PlacedVar> placed_vars() const;
  uint64_t hash_of_parameters() const;
  uint64_t hash_of_rule() const;
};

// Errors: kUnsupported naming a key of the job.
ServedModel served_model(const Program& trainer);
// place() for its parameters. With shared norms, the bounds of blocks are by default also bounds of
// the sums' parts, so that sums have the bits of collective training.
Placement place(const ServedModel& model, int servers);
Placement place(const ServedModel& model, int servers, const PlacementOptions& options);

// A block's sums of squares (ops/partial_squares.h), which its server computes for a shared norm.
struct NormParts {
  int norm = 0, block = 0;  // indices
  int64_t count = 0;
};
// In the order of the sums. Empty with one server, which needs no other's.
std::vector<NormParts> norm_parts(const ServedModel& model, const Placement& placement);

// The parameter that each variable of the operations has the elements of, by VarId; -1: none.
// served_model() and server_program() share it.
std::vector<int> parameter_of_vars(const Program& trainer, const ServedModel& model);

// Whether servers drop the operation: its work depends on the trainer, which does it itself.
bool is_done_by_trainer(const Op& op);

}  // namespace fleet::ps
