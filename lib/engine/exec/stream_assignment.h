// Assigns operations to streams that compute at the same time (execution_strategy.num_threads).
//
// The order of a Plan is cut into regions: operations of one section, one after the other, that
// take less time on several streams with a share of the device each than one by one with all of it,
// as estimated from their shapes (op_work.h). Within a region a list scheduler chooses the
// operation with the longest path to the region's end, and the stream on which it can start first.
// Between regions everything computes on stream 0 with the whole device, so a net without branches
// stays as it is. Streams wait for each other where a region begins or ends (RegionJoins), and
// beyond that only for data and for memory.
//
// Collectives and copies to the host keep their streams and their order. An operation that waits
// for one of them ends a region.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

// Regions grow shorter, or vanish, until the Plan takes no more memory beyond that of one stream:
// this share of it, or this many bytes if that is more. Shuffled orders, which only tests have,
// keep their regions.
inline constexpr double kParallelMemoryShare = 0.1;
inline constexpr size_t kParallelMemoryBytes = size_t{1} << 20;

// Finishes a Plan that has layouts: assigns operations to at most options.compute_streams streams,
// and then memory.
Plan assign_streams(const Plan& plan, const std::vector<VarId>& keep, const PlanOptions& options);

}  // namespace fleet
