// Operations on several streams: which waits for which, and which communicator each one gets.
#include <gtest/gtest.h>

#include "exec/executor.h"
#include "tensor/host.h"

namespace fleet {
namespace {

constexpr int kRounds = 6;

// Six gradients of one feed, each summed on stream 1 + number % communicators.
Program summed(int communicators, bool after_previous) {
  Program program;
  const SectionId section = program.add_section("backward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  for (int i = 0; i < kRounds; ++i) {
    const VarId y =
        program.emit(section, "scale", {x}, {{"scale", 1.0 + i}}, "y" + std::to_string(i))[0];
    Op op = program.make_op(
        section, "all_reduce", {y}, {y},
        {{"communicator", int64_t{i % communicators}}, {"after_previous", after_previous}});
    op.stream = 1 + i % communicators;
    program.ops().push_back(std::move(op));
  }
  return program;
}

std::vector<const PlannedOp*> collectives(const Plan& plan) {
  std::vector<const PlannedOp*> found;
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.def->is_collective) found.push_back(&planned);
  }
  return found;
}

bool waits_for(const Plan& plan, const PlannedOp& planned, const PlannedOp& other) {
  for (int wait : planned.waits) {
    if (&plan.ops[wait] == &other) return true;
  }
  return false;
}

TEST(PlanStreams, CollectivesOfTwoCommunicators_WaitForEachOtherOnlyWhereAsked) {
  for (bool after_previous : {false, true}) {
    const Plan plan = make_plan(summed(2, after_previous), {});
    EXPECT_EQ(plan.streams, 3);
    const auto found = collectives(plan);
    ASSERT_EQ(found.size(), size_t{kRounds});
    for (int i = 1; i < kRounds; ++i) {
      EXPECT_EQ(waits_for(plan, *found[i], *found[i - 1]), after_previous) << i;
    }
  }
}

TEST(PlanStreams, AfterThePreviousOnTheSameStream_NeedsNoEvent) {
  const Plan plan = make_plan(summed(1, true), {});
  for (const PlannedOp* planned : collectives(plan)) {
    for (int wait : planned->waits) EXPECT_FALSE(plan.ops[wait].op.def->is_collective);
  }
}

// Remembers what it was asked for; adds up nothing.
class Recorder : public Communicator {
 public:
  Recorder(int number, std::vector<int>* order) : number_(number), order_(order) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string name() const override { return "recorder"; }
  Buffer allocate(size_t bytes) override { return HostDevice().allocate(bytes); }
  std::unique_ptr<Communicator> split(std::span<const int>) override { return nullptr; }
  void all_reduce(View, View, ReduceOp, Stream&) override { order_->push_back(number_); }
  void reduce(View, View, ReduceOp, int, Stream&) override {}
  void broadcast(View, int, Stream&) override {}
  void all_gather(View, View, Stream&) override {}
  void reduce_scatter(View, View, ReduceOp, Stream&) override {}
  void send(View, int, Stream&) override {}
  void recv(View, int, Stream&) override {}
  void barrier(Stream&) override {}
  void abort(const Error&) override {}
  void throw_if_failed() const override {
    if (failed) throw Error(ErrorCode::kPeerLost, "rank 1 died", "communicator");
  }
  bool failed = false;

 private:
  int number_;
  std::vector<int>* order_;
};

TEST(ExecutorStreams, Collectives_GoToTheCommunicatorTheyName) {
  std::vector<int> order;
  Recorder first(0, &order), second(1, &order);
  HostDevice device;
  Executor executor(make_plan(summed(2, false), {}), device, {&first, &second});
  executor.run({});
  executor.synchronize();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 0, 1, 0, 1}));
}

TEST(ExecutorStreams, CommunicatorThatIsNotThere_IsRefused) {
  std::vector<int> order;
  Recorder only(0, &order);
  HostDevice device;
  EXPECT_THROW(Executor(make_plan(summed(2, false), {}), device, &only), Error);
}

// A GPU's streams end well even where the sum was given up.
TEST(ExecutorStreams, FailureOfAnyCommunicator_ComesOutOfSynchronize) {
  std::vector<int> order;
  Recorder first(0, &order), second(1, &order);
  HostDevice device;
  Executor executor(make_plan(summed(2, false), {}), device, {&first, &second});
  executor.run({});
  second.failed = true;
  EXPECT_THROW(executor.synchronize(), Error);
}

}  // namespace
}  // namespace fleet
