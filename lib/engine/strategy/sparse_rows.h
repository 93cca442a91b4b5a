// Sparse embeddings: their gradients are the rows of a step (embedding_grad_rows), gathered from
// all ranks, and not a variable of the weight's shape.
#pragma once

#include <map>

#include "strategy/meta_optimizer.h"

namespace fleet {

// The weights of a Program's sparse embeddings. Called by Strategy around the phase communication.
class SparseRows {
 public:
  // Finds them in the backward pass, and leaves them to this class (updated_separately). kUsage
  // naming the weight and what it cannot be combined with.
  void find(BuildContext& build);
  // Replaces their gradients by rows. With several ranks, gathers the rows of all of them in the
  // group's order and adds up those of one id, so that every rank has the same.
  void exchange(BuildContext& build) const;
  // Whether the strategy's optimizer updates this parameter, which is in updated_separately.
  bool has(VarId parameter) const { return gradients_.contains(parameter); }

 private:
  std::map<VarId, VarId> gradients_;  // whole ones, by parameter
};

}  // namespace fleet
