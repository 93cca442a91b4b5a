// The Executor: runs a Plan on a device. A step allocates nothing and looks nothing up by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/plan.h"

namespace fleet {

// Not thread-safe: one thread drives it.
class Executor {
 public:
  // communicators: by the number that collectives name in their attribute "communicator"; none in a
  // job of one rank. They must outlive the executor.
  Executor(Plan plan, Device& device, std::vector<Communicator*> communicators);
  // With one communicator, or null.
  Executor(Plan plan, Device& device, Communicator* communicator)
      : Executor(std::move(plan), device,
                 communicator ? std::vector<Communicator*>{communicator}
                              : std::vector<Communicator*>{}) {}
  ~Executor();

  const Plan& plan() const { return plan_; }
  const Program& program() const { return plan_.program; }
  // Sets every parameter and state to its initial value, drawn by (seed, name): alike on every
  // rank.
  void initialize(uint64_t seed);
  // Copies a feed in: plain layout, all of it. The data must stay until the step that uses it was
  // synchronized.
  void feed(VarId var, const void* data);
  // Runs the sections whose predicates hold. Returns after the host has issued everything; failures
  // of a communicator come out here, in synchronize() or in read().
  void run(const StepInfo& info);
  void synchronize();
  // Feeds, parameters, states and kept variables, in plain layout. Synchronizes.
  void read(VarId var, void* data);
  void write(VarId var, const void* data);
  template <typename T>
  std::vector<T> values(VarId var) {
    std::vector<T> all(program().var(var).shape.elements());
    read(var, all.data());
    return all;
  }
  // Memory and layout of a variable as kernels see it.
  Argument argument(VarId var) const;

  // Measures each operation on the host's clock, waiting for it: for finding where time goes, slows
  // devices down.
  void set_profiling(bool on);
  // Of each operation of the plan: seconds a run while profiling.
  std::vector<double> profiled_seconds() const;
  // One line an operation type, most time first: calls, milliseconds a run, share.
  std::string profile() const;

 private:
  struct Step;      // one operation ready to run
  struct Schedule;  // the operations of one combination of sections
  const Schedule& schedule_for(const StepInfo& info);
  void run_profiled(Step& step, Stream& stream);
  void make_step(const PlannedOp& planned);
  Communicator* communicator_of(const Op& op) const;
  void check_communicators() const;
  void* address(const PlannedVar& planned) const;

  Plan plan_;
  Device& device_;
  std::vector<Communicator*> communicators_;
  Buffer persistent_, arena_, bucket_, workspace_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> ends_;  // of the streams but the first
  std::vector<std::unique_ptr<Step>> steps_;
  std::map<std::vector<bool>, std::unique_ptr<Schedule>> schedules_;
  std::vector<bool> active_;  // sections of the step at hand
  bool stale_ = true;         // the host wrote parameters since the last run
  bool profiling_ = false;
  int profiled_runs_ = 0;
};

}  // namespace fleet
