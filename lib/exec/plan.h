// The Plan: everything that can be decided before the first step is decided here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/kernel.h"

namespace fleet {

struct PlanOptions {
  std::string backend = "cpu";  // under which kernels are looked up
  std::map<VarId, Layout>
      initial_layouts;       // fixed beforehand (parameters, states, feeds); for tests
  Device* device = nullptr;  // what the Plan will run on; null: it is only looked at
};

// One operation as it will run. Reorders that the Plan inserted are operations of type "reorder"
// like any other.
struct PlannedOp {
  Op op;
  const KernelDef* kernel = nullptr;
  std::vector<Layout> input_layouts, output_layouts;
  size_t workspace = 0;
  std::vector<int> waits;  // indices of earlier operations on other streams that must have ended
  bool signals = false;    // an operation of another stream waits for it
};

// Where a variable's memory is.
enum class Region {
  kPersistent,  // feeds, parameters, states, and what is fetched: own memory
  kArena,       // temporaries: one arena, reused by liveness
  kBucket,      // gradients side by side in the communicator's memory
};

struct PlannedVar {
  bool used = false;
  Layout layout;
  Region region = Region::kArena;
  size_t offset = 0;  // bytes within the region
  size_t bytes = 0;
};

// Static shapes, execution order, layouts and memory offsets of one Program; all its schedules
// share it.
struct Plan {
  Program program;  // with the reorders' variables
  std::vector<PlannedOp> ops;
  std::vector<PlannedVar> vars;  // by VarId
  size_t persistent_bytes = 0, arena_bytes = 0, bucket_bytes = 0, workspace_bytes = 0;
  int streams = 1;

  // Equal on ranks that can work together: collectives in order with their sizes, types and
  // layouts.
  uint64_t hash() const;
  std::string text() const;  // for --print_plan
};

// keep: variables that are fetched, which must not be overwritten before the host reads them.
Plan make_plan(Program program, const std::vector<VarId>& keep, const PlanOptions& options = {});

}  // namespace fleet
