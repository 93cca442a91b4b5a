// The Executor over the CUDA backend's device: steps recorded and launched as one graph.
#include "exec/executor.h"

#include <gtest/gtest.h>

#include "backend/cuda/device.h"
#include "comm/recorded_communicator.h"
#include "tests/engine/backend/cuda/emulator/stream.h"
#include "tests/engine/exec/recorder.h"

namespace fleet {
namespace {

// Doubles what it should sum, on the stream it is given, as if two ranks had the same.
class Doubling : public Recorder {
 public:
  Doubling(Device& device, std::vector<int>* order) : Recorder(0, order), device_(device) {}
  Buffer allocate(size_t bytes) override { return device_.allocate(bytes); }
  void issue(const CollectiveCall& call, Stream& stream) override {
    Recorder::issue(call, stream);
    emulator::issue(cuda::stream_of(stream), [out = call.out] {
      float* values = static_cast<float*>(out.data);
      for (size_t i = 0; i < out.count; ++i) values[i] *= 2;
    });
  }
  void launched(Stream&) override { ++launches; }
  int launches = 0;

 private:
  Device& device_;
};

// x -> relu -> y; y summed on stream 1 -> relu -> z; every second step also z -> relu -> rare.
struct Net {
  Program program;
  VarId x, z, rare;
  Net() {
    const SectionId always = program.add_section("always", {});
    const SectionId second = program.add_section("second", {.every = 2});
    x = program.feed("x", DType::kFloat32, {1000});
    const VarId y = program.emit(always, "relu", {x})[0];
    program.add_group({.name = "all", .ranks = {0, 1}});
    Op sum = program.make_op(always, "all_reduce", {y}, {y});
    sum.stream = 1;
    program.ops().push_back(std::move(sum));
    z = program.emit(always, "relu", {y})[0];
    rare = program.emit(second, "relu", {z})[0];
  }
};

struct Steps {
  explicit Steps(bool recording) : executor(plan(), device, &communicator) {
    executor.set_recording(recording);
  }
  Plan plan() { return plan_program(net.program, {net.z, net.rare}, {.backend = "cuda"}); }
  // The values of z and rare after each of six steps.
  std::vector<std::vector<float>> run() {
    std::vector<std::vector<float>> all;
    for (int step = 0; step < 6; ++step) {
      std::vector<float> x(1000);
      for (int i = 0; i < 1000; ++i) x[i] = static_cast<float>((i * 7 + step * 13) % 100) - 50;
      executor.feed(net.x, x);
      executor.run({.step = step});
      all.push_back(executor.values<float>(net.z));
      all.push_back(executor.values<float>(net.rare));
    }
    return all;
  }

  cuda::CudaDevice device{0, {}};
  std::vector<int> order;
  Doubling communicator{device, &order};
  Net net;
  Executor executor;
};

TEST(ExecutorOnCuda, Recorded_GivesTheSameBitsAsStepByStep) {
  Steps recorded(true), issued(false);
  const auto values = recorded.run();
  EXPECT_EQ(values, issued.run());
  EXPECT_EQ(values[0][60], std::max(0.f, 2 * (60.f * 7 - 400 - 50)));
  // Two schedules: each was issued twice, for the first run and for the recording; four launches.
  EXPECT_EQ(recorded.order.size(), 4u);
  EXPECT_EQ(recorded.communicator.launches, 4);
  EXPECT_EQ(issued.order.size(), 6u);
  EXPECT_EQ(issued.communicator.launches, 0);
}

TEST(ExecutorOnCuda, RecordingPaused_IssuesAndGoesOnWithTheSameGraphs) {
  Steps steps(true);
  steps.run();  // records both schedules
  const auto values = steps.run();
  ASSERT_EQ(steps.order.size(), 4u);
  ASSERT_EQ(steps.communicator.launches, 10);
  steps.executor.pause_recording(true);
  EXPECT_EQ(steps.run(), values);
  EXPECT_EQ(steps.order.size(), 10u);
  EXPECT_EQ(steps.communicator.launches, 10);
  steps.executor.pause_recording(false);
  EXPECT_EQ(steps.run(), values);
  EXPECT_EQ(steps.order.size(), 10u);
  EXPECT_EQ(steps.communicator.launches, 16);
}

struct Numbers : CollectiveListener {
  Numbers() { CollectiveLog::of_process().set_listener(this); }
  ~Numbers() override { CollectiveLog::of_process().set_listener(nullptr); }
  void issued(const CollectiveRecord& call) override { all.push_back(call.sequence); }
  std::vector<int64_t> all;
};

// Making a recording issues no collective; each launch issues those in it.
TEST(ExecutorOnCuda, RecordedSteps_CountTheirCollectivesOnceEach) {
  Numbers numbers;
  cuda::CudaDevice device(0, {});
  std::vector<int> order;
  RecordedCommunicator communicator(std::make_unique<Doubling>(device, &order), "all", {0, 1},
                                    true);
  Net net;
  Executor executor(plan_program(net.program, {net.z, net.rare}, {.backend = "cuda"}), device,
                    &communicator);
  for (int step = 0; step < 6; ++step) executor.run({.step = step});
  executor.synchronize();
  EXPECT_EQ(order.size(), 4u);  // two of them while recording
  EXPECT_EQ(numbers.all, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(ExecutorOnCuda, ProfilingAndChecking_IssueEachOperation) {
  Steps profiled(true);
  profiled.executor.set_profiling(true);
  profiled.run();
  EXPECT_EQ(profiled.order.size(), 6u);
  Steps checked(true);
  checked.executor.set_checking(true);
  checked.run();
  EXPECT_EQ(checked.order.size(), 6u);
}

// A kernel that waits within a step.
class Waiting : public Doubling {
 public:
  using Doubling::Doubling;
  void issue(const CollectiveCall&, Stream& stream) override { stream.synchronize(); }
};

TEST(ExecutorOnCuda, StepThatCannotBeRecorded_SaysHowToGoOn) {
  cuda::CudaDevice device(0, {});
  std::vector<int> order;
  Waiting communicator(device, &order);
  Net net;
  Executor executor(plan_program(net.program, {net.z, net.rare}, {.backend = "cuda"}), device,
                    &communicator);
  executor.run({.step = 0});
  try {
    executor.run({.step = 2});
    FAIL() << "recorded a wait";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("train.cuda_graph=false"), std::string::npos);
  }
  executor.set_recording(false);
  executor.run({.step = 4});
}

}  // namespace
}  // namespace fleet
