// The steps by which a Plan is built: layouts, then streams and memory.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

// Fills plan.ops and the layouts in plan.vars from plan.program (verified).
// PlanOptions::initial_layouts are kept.
void assign_layouts(Plan& plan, const PlanOptions& options);

// Variables that are adjacent in memory, in this order.
struct ContiguousVars {
  std::vector<VarId> vars;
  GroupId group = 0;  // the first operation's that requires the chain; owns the memory
};

// The chains of all operations with contiguous inputs or outputs (Collective), in the order of
// their first operations. A variable may be in several such operations if it has the same
// neighbours in all of them: one operation may take a part of another's chain, or continue it.
// kInternal names a variable for which two operations require different neighbours.
std::vector<ContiguousVars> find_contiguous_vars(const Plan& plan);

inline constexpr size_t kAlignment = 64;  // in bytes, for every variable
inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sets region and offset in plan.vars. Temporaries share memory: two of them overlap only if, in
// every run, all operations that use one have ended before any that uses the other starts
// (StreamOrder). Inputs that operations require to be contiguous (find_contiguous_vars()) are in
// the memory of the operation's group. Variables in `keep` never share memory.
void assign_memory(Plan& plan, const std::vector<VarId>& keep);

// Regions grow shorter, or vanish, until the Plan takes no more memory beyond that of one stream:
// this share of it, or this many bytes if that is more. Shuffled orders, which only tests have,
// keep their regions.
inline constexpr double kParallelMemoryShare = 0.1;
inline constexpr size_t kParallelMemoryBytes = size_t{1} << 20;

// Finishes a Plan that has layouts: assigns operations to at most options.compute_streams streams
// that compute at the same time (execution_strategy.num_threads), and then memory.
//
// The order of a Plan is cut into regions: operations of one section, one after the other, that
// take less time on several streams with a share of the device each than one by one with all of it,
// as estimated from their shapes (work_of()). Within a region a list scheduler chooses the
// operation with the longest path to the region's end, and the stream on which it can start first.
// Between regions everything computes on stream 0 with the whole device, so a net without branches
// stays as it is. Streams wait for each other where a region begins or ends (RegionJoins), and
// beyond that only for data and for memory.
//
// Collectives and copies to the host keep their streams and their order. An operation that waits
// for one of them ends a region.
Plan assign_streams(const Plan& plan, const std::vector<VarId>& keep, const PlanOptions& options);

}  // namespace fleet
