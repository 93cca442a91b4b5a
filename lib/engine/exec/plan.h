// The Plan holds every decision that can be made before the first step.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/kernel.h"

namespace fleet {

class Store;

// Operations of one rank in a group or with one other rank: one line each, in issue order.
// Ranks that can work together have the same lines.
struct CollectiveSequence {
  std::vector<int> ranks;  // ranks of the job, in the order of the group; a pair's lower rank first
  std::vector<std::string> operations;
  uint64_t hash() const;
};

// Keys: "ranks 0 1 2" for the operations of a group, "pair 0 1" for the messages between two ranks.
using CollectiveSequences = std::map<std::string, CollectiveSequence>;

// Publishes this rank's sequences and compares each with those of the other ranks in it.
// Collective: every rank of the job calls it once per Store. kUsage names the rank that differs,
// the group or pair, and the first differing operation; kTimeout if a rank does not arrive.
void compare_collective_sequences(const CollectiveSequences& mine, int rank, int world,
                                  Store& store, std::chrono::milliseconds timeout);

struct PlanOptions {
  std::string backend = "cpu";                   // selects the kernels
  std::map<VarId, Layout> initial_layouts = {};  // parameters, states, feeds
  Device* device = nullptr;  // the device that runs the Plan; null: the Plan is only inspected
};

// One operation as it will run. Reorders inserted by the Plan are ordinary operations of type
// "reorder".
struct PlannedOp {
  Op op;
  const KernelDef* kernel = nullptr;
  std::vector<Layout> input_layouts, output_layouts;
  size_t workspace = 0;
};

// An operation of a schedule, which lists the operations that run in a step.
struct ScheduledOp {
  int op = 0;                   // index in Plan::ops
  std::vector<int> waits = {};  // operations of this schedule on other streams that must have ended
};

// The memory region of a variable.
enum class Region {
  kPersistent,  // feeds, parameters, states and fetched variables: memory of their own
  kArena,       // temporaries: one arena, reused by liveness
  kHost,        // in host memory: see ops/offload.h
  kBucket,      // contiguous inputs of collectives, in the memory of their group's communicator
};

struct PlannedVar {
  bool used = false;
  Layout layout;
  Region region = Region::kArena;
  GroupId group = 0;  // kBucket: the owner of the memory
  size_t offset = 0;  // bytes within the region or the group's memory
  size_t bytes = 0;
  bool shared = false;  // other variables use the same memory at other times in a step
};

// Bytes by purpose, including padding.
struct PlannedMemory {
  size_t parameters = 0;
  size_t states = 0;  // the optimizer's, and running statistics
  // Temporaries in buckets that ranks sum. In a job of one rank they count as activations.
  size_t gradients = 0;
  size_t activations = 0;  // everything that is live within a step
  size_t feeds = 0;        // including variables that the host reads
  size_t workspace = 0;
  size_t host = 0;  // in host memory; not in total()
  size_t total() const { return parameters + states + gradients + activations + feeds + workspace; }
  std::string text() const;  // "parameters 97.5 MiB, optimizer state 97.7 MiB, ..."
};

// Static shapes, execution order, layouts and memory offsets of one Program. All its schedules
// share them.
struct Plan {
  Program program;  // including the variables of reorders
  std::vector<PlannedOp> ops;
  std::vector<PlannedVar> vars;  // by VarId
  size_t persistent_bytes = 0, arena_bytes = 0, host_bytes = 0;
  std::vector<size_t> bucket_bytes;  // by group; trailing groups without buckets are omitted
  std::vector<size_t> workspace_bytes = {0};  // by stream; kernels of one never overlap

  int streams() const { return static_cast<int>(workspace_bytes.size()); }
  // The first one computes; the others communicate, or copy to the host.
  static bool computes(int stream) { return stream == 0; }
  PlannedMemory memory() const;
  // The operations of the active sections, in order, and their waits: for each stream, the last
  // operation that wrote an input or accessed an output.
  std::vector<ScheduledOp> schedule(const std::vector<bool>& active) const;

  // The operations of this rank in each group and with each rank that it exchanges messages with,
  // in order. Ranks can work together only if they agree on them.
  CollectiveSequences collective_sequences(int rank) const;
  std::string text() const;  // for --print_plan
};

// keep: fetched variables, which must not be overwritten before the host reads them.
Plan plan_program(Program program, const std::vector<VarId>& keep, const PlanOptions& options = {});

}  // namespace fleet
