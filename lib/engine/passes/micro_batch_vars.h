// The variables of one stage of a pipeline, once for each micro-batch. Internal to passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/pipeline.h"
#include "passes/pipeline_traffic.h"

namespace fleet {

inline bool has_id(const std::vector<VarId>& ids, VarId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Maps the original Program's variables to the rewritten one's, which it creates. Not
// thread-safe. Program, options and traffic must outlive it.
class MicroBatchVars {
 public:
  // Call it before the Program is rewritten.
  MicroBatchVars(Program& program, const PipelineOptions& options, const PipelineTraffic& traffic);

  // Gives the feeds the rows of all micro-batches.
  void grow_feeds();

  // The variable that an operation of this micro-batch writes for `id`. The first micro-batch keeps
  // the name, unless the host reads rows of all of them.
  VarId written(VarId id, int micro_batch);
  // The variable that an operation of this section reads for `id`. Appends the slice of a feed
  // before its first reader. kInternal if nothing has written the variable yet.
  VarId read(VarId id, int micro_batch, SectionId section);
  // A new temporary like `id`.
  VarId fresh(VarId id, int micro_batch);

  bool has(VarId id, int micro_batch) const { return local_[micro_batch].contains(id); }
  VarId at(VarId id, int micro_batch) const { return local_[micro_batch].at(id); }
  void set(VarId id, int micro_batch, VarId here) { local_[micro_batch][id] = here; }

  // A parameter in this stage: itself, or what its owner sent.
  VarId parameter(VarId id, SectionId section) const;
  void set_parameter(VarId id, bool training, VarId here) { imported_[{id, training}] = here; }

  // The section of the operations of other stages that belong to `section`.
  SectionId remote_section(SectionId section);

 private:
  void find_slices();
  bool is_temporary(VarId id) const;
  // The rows of a micro-batch. Section: the first reader's, which may be `remote`, as the slice is
  // then.
  VarId slice(VarId feed, int micro_batch, SectionId section);

  Program& program_;
  const PipelineOptions& options_;
  const PipelineTraffic& traffic_;
  int64_t rows_ = 1;                                       // per micro-batch
  std::vector<std::map<VarId, VarId>> local_;              // by micro-batch: original -> here
  std::map<std::pair<VarId, bool>, VarId> imported_;       // {parameter, in training} -> here
  std::map<std::pair<VarId, bool>, SectionId> sliced_in_;  // {feed, in training}
  // {feed, micro-batch, in training} -> its rows
  std::map<std::tuple<VarId, int, bool>, VarId> slices_;
};

}  // namespace fleet
