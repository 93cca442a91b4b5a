// The Executor runs a Plan, or one of several, on a device. A step neither allocates memory nor
// looks names up.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "exec/plan.h"
#include "tensor/device.h"
#include "tensor/stream_timer.h"

namespace fleet {

// Host memory as an argument: any contiguous range of trivially copyable elements, or a span of
// bytes.
template <typename Range>
concept PlainRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

// A view of the caller's memory. Pass it by value; do not store it.
class ConstHostBytes {
 public:
  template <PlainRange Range>
  ConstHostBytes(const Range& range)  // NOLINT(runtime/explicit)
      : data_(std::ranges::data(range)),
        size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)) {}
  const void* data() const { return data_; }
  size_t size() const { return size_; }  // in bytes

 private:
  const void* data_;
  size_t size_;
};

// The same, to write to.
class HostBytes {
 public:
  template <PlainRange Range>
  requires(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>)
      HostBytes(Range&& range)  // NOLINT(bugprone-forwarding-reference-overload): not a range
      : data_(std::ranges::data(range)),
        size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)) {}
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_;
  size_t size_;
};

class CollectivePurposes;
class TraceRecorder;

// Not thread-safe: use it from one thread.
//
// Of several Plans (exec/shared_places.h) one is selected: run() runs it, and argument(), feed()
// and all that read or write values go by its shapes. A VarId belongs to the first
// Plan's Program everywhere; it stands for the selected Plan's variable of the same name.
class Executor {
 public:
  // communicators: indexed by GroupId, the value of a collective's attribute "communicator"
  // (CommunicatorSet::all()); null for a group of one rank. They must outlive the executor.
  // kInternal if a collective's group has no communicator or one of another size.
  Executor(Plan plan, Device& device, std::vector<Communicator*> communicators);
  // plans: after share_places(). The first is selected.
  Executor(std::vector<Plan> plans, Device& device, std::vector<Communicator*> communicators);
  // For a Program with at most one group: its communicator, or null.
  Executor(Plan plan, Device& device, Communicator* communicator)
      : Executor(std::move(plan), device,
                 communicator ? std::vector<Communicator*>{communicator}
                              : std::vector<Communicator*>{}) {}
  ~Executor();

  const Plan& plan() const { return plan(0); }  // the first
  const Plan& plan(int i) const;
  const Program& program() const { return plan().program; }
  // Selects the Plan for all later calls, 0 <= i < the number of Plans.
  void select(int i);
  int selected() const { return selected_; }
  // Sets every parameter and state of this rank to its initial value, drawn by (seed, name) in
  // float32 and rounded to the variable's type: identical on every rank.
  void initialize(uint64_t seed);
  // Copies a whole feed in, in plain layout. `data` must stay valid until the step that uses it has
  // been synchronized. kInternal, here and below, if its size is not the variable's.
  void feed(VarId var, ConstHostBytes data);
  // Runs the sections whose predicates hold. Returns when the host has issued all work. A
  // communicator's failure is thrown here, in synchronize() or in read().
  void run(const StepInfo& info);
  void synchronize();
  // Throws if a communicator has failed; does not wait.
  void check_communicators() const;
  // The stream that run() issues to. Work on it runs before the next run.
  Stream& stream() { return *streams_[0]; }
  // Reads a feed, parameter, state or kept variable, in plain layout. Synchronizes. kInternal if
  // the variable shares its memory with others.
  void read(VarId var, HostBytes data);
  void write(VarId var, ConstHostBytes data);
  template <typename T>
  std::vector<T> values(VarId var) {
    std::vector<T> all(argument(var).shape.elements());
    read(var, all);
    return all;
  }
  // Copies these values in memory order: argument(var).bytes() bytes in argument(var).layout. Only
  // issues the copy; the data is valid after synchronize().
  void copy_out(VarId var, HostBytes data);
  // The values in memory order, where the host can read them directly after synchronize(); empty if
  // the device keeps them in its own memory.
  std::span<const std::byte> on_host(VarId var) const;
  // Memory, layout and shape of a variable, as the selected Plan's kernels see it.
  Argument argument(VarId var) const;

  // If off, steps are issued operation by operation even if the device could record them and launch
  // them as one. Profiling and checking also turn recording off.
  void set_recording(bool on) { recording_ = on; }
  // Issues steps operation by operation while on, and keeps the recorded graphs for later steps.
  // All ranks of a job pause at the same step: NCCL demands that all of them record a collective or
  // none does.
  void pause_recording(bool on) { recording_paused_ = on; }
  // Checks the floating outputs of each operation on the host. run() throws kUsage naming the first
  // operation that produced a non-finite value. Slow; for debugging.
  void set_checking(bool on) { checking_ = on; }
  // Measures each operation on the host's clock and waits for it, so that none overlaps another.
  // For profiling only: slows devices down.
  void set_profiling(bool on);
  // For each operation of plan(), the seconds per run while profiling. Refreshes and syncs do not
  // count as runs: their time is added to steps and evaluations.
  std::vector<double> profiled_seconds() const;
  // Records when each operation runs, without waiting for it, until called with null. On a device
  // next to the host, steps are then issued operation by operation, times are in the recorder after
  // the call with null, which waits for the device, and those of the first `steps` steps fit.
  void set_trace(TraceRecorder* trace, int64_t steps = 0);
  // One line per operation type, most time first: calls, milliseconds per run, share.
  std::string profile() const;

 private:
  struct PreparedOp;    // one operation, ready to run
  struct Schedule;      // the operations of one combination of sections
  struct PreparedPlan;  // a Plan, its operations and schedules
  PreparedPlan& current() const { return *plans_[static_cast<size_t>(selected_)]; }
  void allocate();
  void make_streams();
  void prepare(PreparedPlan& prepared);
  Schedule& schedule_for(const StepInfo& info);
  std::unique_ptr<Schedule> make_schedule();
  void issue(Schedule& schedule, const StepInfo& info);
  struct Item;  // an operation of a Schedule
  void issue_one(const Item& item, const StepInfo& info);
  void record(Schedule& schedule, const StepInfo& info);
  void run_profiled(PreparedOp& step, Stream& stream);
  // waited: the stream waited for another one just before.
  void run_traced(PreparedOp& step, Stream& stream, const StepInfo& info, bool waited);
  void run_timed(PreparedOp& step, Stream& stream, const StepInfo& info, bool waited);
  void add_device_times();
  void check_outputs(const PreparedOp& step, const StepInfo& info);
  std::unique_ptr<PreparedOp> prepare_op(const PreparedPlan& prepared, const PlannedOp& planned,
                                         CollectivePurposes* purposes) const;
  Communicator* communicator_of(const Op& op) const;
  Communicator* communicator_of(GroupId group) const;
  void* address(const PlannedVar& planned) const;
  // A variable of that Plan's own Program.
  Argument own_argument(const PreparedPlan& prepared, VarId own) const;
  const PlannedVar& planned(VarId var) const;  // the selected Plan's
  // kInternal naming the variable and both sizes if they differ.
  void check_size(VarId var, const char* call, size_t given, size_t needed) const;

  Device& device_;
  std::vector<Communicator*> communicators_;
  Buffer persistent_, arena_, host_;
  std::vector<Buffer> buckets_;     // by group
  std::vector<Buffer> workspaces_;  // by stream
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<Event> begin_;              // starts a schedule, for the other streams
  std::vector<std::unique_ptr<Event>> ends_;  // one per stream
  std::vector<std::unique_ptr<PreparedPlan>> plans_;
  int selected_ = 0;
  std::vector<bool> active_;  // sections of the current step
  bool stale_ = true;         // the host wrote parameters since the last run
  bool recording_ = true, recording_paused_ = false, checking_ = false, profiling_ = false;
  int profiled_runs_ = 0;
  TraceRecorder* trace_ = nullptr;
  std::vector<uint32_t> trace_tracks_;  // by stream
  std::vector<int64_t> trace_begins_;   // by stream: when its current operation began
  std::vector<int> trace_ends_;         // by stream: the mark behind its last operation
  // For a device other than the host: marks of its streams, and the operations between them.
  std::unique_ptr<StreamTimer> timer_;
  struct TimedOp;
  std::vector<TimedOp> timed_ops_;
};

}  // namespace fleet
