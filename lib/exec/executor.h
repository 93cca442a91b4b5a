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
  // communicators: by GroupId, the number that collectives name in their attribute "communicator"
  // (CommunicatorSet::all()); null where the group has one rank. They must outlive the executor.
  // kInternal where a collective's group has none, or one of another size.
  Executor(Plan plan, Device& device, std::vector<Communicator*> communicators);
  // With the communicator of the only group, or null.
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
  // Throws what went wrong in a communicator so far; does not wait.
  void check_communicators() const;
  // What run() issues to: work on it runs before the next run.
  Stream& stream() { return *streams_[0]; }
  // Feeds, parameters, states and kept variables, in plain layout. Synchronizes. kInternal where
  // the variable's memory is used for others too.
  void read(VarId var, void* data);
  void write(VarId var, const void* data);
  template <typename T>
  std::vector<T> values(VarId var) {
    std::vector<T> all(program().var(var).shape.elements());
    read(var, all.data());
    return all;
  }
  // Copies those values as they lie in memory, argument(var).bytes() in argument(var).layout. Only
  // issued: they are there after synchronize().
  void copy_out(VarId var, void* data);
  // Where the host can read them at once after synchronize(); null where the device keeps them in
  // memory of its own.
  const void* on_host(VarId var) const;
  // Memory and layout of a variable as kernels see it.
  Argument argument(VarId var) const;

  // Steps are issued operation by operation even where the device could record them and launch them
  // as one. Profiling and checking do that too.
  void set_recording(bool on) { recording_ = on; }
  // After each operation its floating outputs are looked at on the host; run() throws kUsage naming
  // the first operation that made a value that is not finite. Slow: for finding it.
  void set_checking(bool on) { checking_ = on; }
  // Measures each operation on the host's clock, waiting for it: for finding where time goes, slows
  // devices down.
  void set_profiling(bool on);
  // Of each operation of the plan: seconds a run while profiling. Refreshes and syncs are no runs
  // of their own here: their time is among that of the steps and evaluations.
  std::vector<double> profiled_seconds() const;
  // One line an operation type, most time first: calls, milliseconds a run, share.
  std::string profile() const;

 private:
  struct Step;      // one operation ready to run
  struct Schedule;  // the operations of one combination of sections
  Schedule& schedule_for(const StepInfo& info);
  std::unique_ptr<Schedule> make_schedule();
  void issue(Schedule& schedule, const StepInfo& info);
  void record(Schedule& schedule, const StepInfo& info);
  void run_profiled(Step& step, Stream& stream);
  void check_outputs(const Step& step, const StepInfo& info);
  void make_step(const PlannedOp& planned);
  Communicator* communicator_of(const Op& op) const;
  Communicator* communicator_of(GroupId group) const;
  void* address(const PlannedVar& planned) const;

  Plan plan_;
  Device& device_;
  std::vector<Communicator*> communicators_;
  Buffer persistent_, arena_, host_;
  std::vector<Buffer> buckets_;                   // by group
  std::vector<Buffer> workspaces_;                // by stream
  std::vector<std::unique_ptr<Stream>> streams_;  // the first computes, the others run beside it
  std::unique_ptr<Event> begin_;                  // of a schedule, for the other streams
  std::vector<std::unique_ptr<Event>> ends_;      // of each stream
  std::vector<std::unique_ptr<Step>> steps_;
  std::map<std::vector<bool>, std::unique_ptr<Schedule>> schedules_;
  std::vector<bool> active_;  // sections of the step at hand
  bool stale_ = true;         // the host wrote parameters since the last run
  bool recording_ = true, checking_ = false, profiling_ = false;
  int profiled_runs_ = 0;
};

}  // namespace fleet
