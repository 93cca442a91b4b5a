// Times of operations on a device that runs next to the host.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "exec/executor.h"
#include "observe/trace_recorder.h"
#include "tensor/host.h"
#include "tensor/stream_timer.h"

namespace fleet {
namespace {

// Mark n is reached at n nanoseconds.
class CountingTimer : public StreamTimer {
 public:
  CountingTimer() { marks = 0; }
  int mark(Stream&) override { return marks++; }
  bool reached(int) override { return idle; }
  std::vector<int64_t> times() override {
    std::vector<int64_t> all;
    for (int i = 0; i < marks; ++i) all.push_back(i);
    return all;
  }
  static inline int marks = 0;
  static inline bool idle = false;
};

FLEET_STREAM_TIMER(cpu) {
  def.make = [](const Device&, size_t) -> std::unique_ptr<StreamTimer> {
    return std::make_unique<CountingTimer>();
  };
}

class BesideHost : public HostDevice {
 public:
  bool runs_beside_host() const override { return true; }
};

// y = 2 x; z = 2 y, on another stream; a = 2 y; b = 2 (a + z).
Program two_streams() {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId y = program.emit(section, "scale", {x}, {{"scale", 2.0}}, "y")[0];
  const VarId z = program.temporary("z");
  Op other = program.make_op(section, "scale", {y}, {z}, {{"scale", 2.0}});
  other.stream = 1;
  program.ops().push_back(std::move(other));
  const VarId a = program.emit(section, "scale", {y}, {{"scale", 2.0}}, "a")[0];
  const VarId sum = program.emit(section, "elementwise_add", {a, z}, {}, "sum")[0];
  program.emit(section, "scale", {sum}, {{"scale", 2.0}}, "b");
  return program;
}

// {begin, end} of the operations of two steps, in their order.
std::vector<std::vector<int64_t>> traced(bool idle) {
  CountingTimer::idle = idle;
  BesideHost device;
  Executor executor(plan_program(two_streams(), {}), device, nullptr);
  const TraceReader reader(2);
  const auto recorder = TraceRecorder::open(reader.path());
  executor.set_trace(recorder.get(), 2);
  executor.run({});
  executor.run({});
  executor.synchronize();
  executor.set_trace(nullptr, 0);
  std::vector<std::vector<int64_t>> times;
  for (const TraceRecord& record : reader.read({}, TraceMemory::kBytes).records) {
    times.push_back({record.begin_ns, record.end_ns});
  }
  return times;
}

// A mark of its own begins the first operation of a stream in a step, and one that waited.
TEST(StreamTimes, OperationsOfABusyStream_ShareMarks) {
  const std::vector<std::vector<int64_t>> step = {{0, 1}, {2, 3}, {1, 4}, {5, 6}, {6, 7}};
  const auto times = traced(false);
  ASSERT_EQ(times.size(), 2 * step.size());
  for (size_t i = 0; i < step.size(); ++i) {
    EXPECT_EQ(times[i], step[i]) << i;
    EXPECT_EQ(times[step.size() + i][0], step[i][0] + 8) << i;
  }
}

TEST(StreamTimes, OperationsOfAnIdleStream_HaveMarksOfTheirOwn) {
  const auto times = traced(true);
  ASSERT_EQ(times.size(), 10u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i],
              (std::vector<int64_t>{static_cast<int64_t>(2 * i), static_cast<int64_t>(2 * i + 1)}));
  }
}

}  // namespace
}  // namespace fleet
