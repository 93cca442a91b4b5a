// The Executor: runs a Plan on a device. A step allocates nothing and looks nothing up by name.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "exec/plan.h"

namespace fleet {

// Not thread-safe: one thread drives it.
class Executor {
 public:
  // communicator may be null in a job of one rank; it must outlive the executor.
  Executor(Plan plan, Device& device, Communicator* communicator);
  ~Executor();

  const Plan& plan() const { return plan_; }
  // Sets every parameter and state to its initial value, drawn by (seed, name): alike on every
  // rank.
  void initialize(uint64_t seed);
  // Copies a feed in: plain layout, all of it.
  void feed(VarId var, const void* data);
  // Runs the sections whose predicates hold. Returns after the host has issued everything; failures
  // of a communicator come out here or in read().
  void run(const StepInfo& info);
  void synchronize();
  // Persistent variables and kept ones, in plain layout.
  void read(VarId var, void* data);
  void write(VarId var, const void* data);
  // Memory and layout of a variable as kernels see it.
  Argument argument(VarId var) const;

 private:
  struct Step;      // one operation ready to run
  struct Schedule;  // the operations of one combination of sections
  const Schedule& schedule_for(const StepInfo& info);

  Plan plan_;
  Device& device_;
  Communicator* communicator_;
  Buffer persistent_, arena_, bucket_, workspace_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::map<std::vector<bool>, std::unique_ptr<Schedule>> schedules_;
  std::vector<bool> active_;  // sections of the step at hand
};

}  // namespace fleet
