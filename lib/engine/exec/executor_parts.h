// The operations and schedules of an Executor's Plans. Internal to exec.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "comm/recorded_communicator.h"
#include "exec/executor.h"

namespace fleet {

struct Executor::PreparedOp {
  const PlannedOp* planned = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Event> done;  // set only if another stream waits for it
  double seconds = 0;
  int64_t calls = 0;
  uint32_t trace_name = 0;
};

struct Executor::TimedOp {
  const PreparedOp* op;
  int begin, end;  // marks of timer_
  int64_t step;
};

struct Executor::Item {
  PreparedOp* step;
  std::vector<Event*> waits;
};

struct Executor::Schedule {
  std::vector<Item> items;
  std::vector<int> beside;  // the streams it uses other than the first
  std::set<Communicator*> communicators;
  bool ran = false;
  std::unique_ptr<Recording> recording;  // the whole schedule, once it has run
  RecordedCalls recorded_calls;          // in the recording
};

struct Executor::PreparedPlan {
  Plan plan;
  std::vector<VarId> own = {};  // by VarId of the first Plan; empty: the same
  // The first Plan's parameters and states that have another place in this one, and those that this
  // one lacks or does not use; set by select().
  bool compared = false;
  std::vector<VarId> moved = {}, lacking = {};
  std::vector<std::unique_ptr<PreparedOp>> ops = {};
  std::map<std::vector<bool>, std::unique_ptr<Schedule>> schedules = {};
};

}  // namespace fleet
