// The Plan: everything that can be decided before the first step is decided here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/agreements.h"
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
};

// An operation of a schedule: of those that run in a step.
struct ScheduledOp {
  int op = 0;  // index in Plan::ops
  std::vector<int>
      waits;  // operations of the same schedule, on other streams, that must have ended
};

// Where a variable's memory is.
enum class Region {
  kPersistent,  // feeds, parameters, states, and what is fetched: own memory
  kArena,       // temporaries: one arena, reused by liveness
  kHost,        // the same in the host's memory: see ops/offload.h
  kBucket,      // what collectives take side by side, in the memory of their group's communicator
};

struct PlannedVar {
  bool used = false;
  Layout layout;
  Region region = Region::kArena;
  GroupId group = 0;  // kBucket: in whose memory
  size_t offset = 0;  // bytes within the region, or that memory
  size_t bytes = 0;
  bool shared = false;  // its memory is another variable's at other times of a step
};

// Bytes by what they are for, padding included.
struct PlannedMemory {
  size_t parameters = 0;
  size_t states = 0;  // the optimizer's, and running statistics
  // Temporaries of buckets, those that ranks sum; of a job of one rank they are among activations.
  size_t gradients = 0;
  size_t activations = 0;  // everything that lives within a step
  size_t feeds = 0;        // and what the host reads
  size_t workspace = 0;
  size_t host = 0;  // in the host's memory; not in total()
  size_t total() const { return parameters + states + gradients + activations + feeds + workspace; }
  std::string text() const;  // "parameters 97.5 MiB, optimizer state 97.7 MiB, ..."
};

// Static shapes, execution order, layouts and memory offsets of one Program; all its schedules
// share it.
struct Plan {
  Program program;  // with the reorders' variables
  std::vector<PlannedOp> ops;
  std::vector<PlannedVar> vars;  // by VarId
  size_t persistent_bytes = 0, arena_bytes = 0, host_bytes = 0;
  std::vector<size_t> bucket_bytes;  // by group; of those that have none, the last are left out
  std::vector<size_t> workspace_bytes = {0};  // by stream: kernels of one never run side by side

  int streams() const { return static_cast<int>(workspace_bytes.size()); }
  PlannedMemory memory() const;
  // The operations of the sections that are active, in order, and what they wait for: the last one,
  // per stream, that wrote what they read or touched what they write.
  std::vector<ScheduledOp> schedule(const std::vector<bool>& active) const;

  // What this rank of the job does in each group and with each rank that it sends to or receives
  // from, in order: ranks can work together where they agree on it.
  Agreements agreements(int rank) const;
  std::string text() const;  // for --print_plan
};

// keep: variables that are fetched, which must not be overwritten before the host reads them.
Plan make_plan(Program program, const std::vector<VarId>& keep, const PlanOptions& options = {});

}  // namespace fleet
