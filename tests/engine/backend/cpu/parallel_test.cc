// Training with several computing streams on the CPU: convolutions with a share of the cores.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <set>

#include "backend/cpu/device.h"
#include "base/cpu.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

// GoogLeNet on small images.
class GoogLeNet {
 public:
  GoogLeNet(Device& device, int streams, std::optional<uint64_t> shuffle) {
    const ModelDef& def = model_registry().get("googlenet");
    Program program;
    training_ = build_training(
        program, {.model = "googlenet",
                  .model_settings =
                      ConfigTree::from_json(R"({"num_classes": 10})", "test").validate(def.schema),
                  .batch = 2,
                  .columns = image_columns(kImage)});
    Strategy rewrites = make_strategy("");
    rewrites.append_backward(program, training_.forward, training_.loss);
    rewrites.append_optimizer(training_.feed("learning_rate"),
                              ConfigTree::from_json(R"({"name": "momentum"})", "test")
                                  .validate(optimizer_schema("momentum")));
    executor_ = std::make_unique<Executor>(plan_program(std::move(program), {training_.loss},
                                                        {.initial_layouts = {},
                                                         .device = &device,
                                                         .compute_streams = streams,
                                                         .shuffle = shuffle}),
                                           device, nullptr);
  }

  // The losses of some steps, and all parameters after them.
  std::vector<float> train(int steps) {
    executor_->initialize(1);
    std::vector<float> pixels(2 * kImage.elements());
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    }
    executor_->feed(training_.feed("image"), pixels);
    executor_->feed(training_.feed("label"), std::vector<int64_t>{3, 7});
    executor_->feed(training_.feed("weight"), std::vector<float>(2, 1));
    executor_->feed(training_.feed("sample_key"), std::vector<int64_t>{1, 2});
    executor_->feed(training_.feed("learning_rate"), std::vector<float>{0.01f});
    std::vector<float> all;
    for (int step = 0; step < steps; ++step) {
      executor_->run({.step = step});
      all.push_back(executor_->values<float>(training_.loss)[0]);
    }
    for (VarId id : executor_->program().parameters()) {
      const std::vector<float> values = executor_->values<float>(id);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Plan const& plan() const { return executor_->plan(); }

 private:
  static inline const Shape kImage{3, 32, 32};
  Training training_;
  std::unique_ptr<Executor> executor_;
};

// A device with this number of threads, whatever the machine has.
struct Threads {
  explicit Threads(int count) : before(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before); }
  const int before;
};

TEST(ParallelOnCpu, ShuffledSchedulesOfGoogLeNet_TrainToTheSameBits) {
  const Threads threads(2);
  cpu::CpuDevice device;
  std::set<std::string> orders;
  std::vector<float> expected;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    GoogLeNet net(device, 2, seed == 0 ? std::nullopt : std::optional(seed));
    EXPECT_EQ(net.plan().compute_streams.size(), 2u);
    orders.insert(net.plan().text());
    const std::vector<float> values = net.train(2);
    if (seed == 0) expected = values;
    ASSERT_EQ(values, expected) << "seed " << seed;
  }
  EXPECT_EQ(orders.size(), 8u);
}

// Branches end in the layouts of convolutions, and so do their gradients.
TEST(LayoutsOnCpu, BranchesOfGoogLeNet_AreJoinedWithoutReorders) {
  if (!FLEET_X86_HAS("avx2")) GTEST_SKIP() << "other layouts";
  cpu::CpuDevice device;
  const GoogLeNet net(device, 1, std::nullopt);
  std::set<VarId> reordered;
  int joined = 0;
  for (const PlannedOp& planned : net.plan().ops) {
    const Op& op = planned.op;
    if (op.type() == "reorder") reordered.insert(op.outputs[0]);
    if (op.type() != "concat" && op.type() != "slice") continue;
    ++joined;
    for (const VarId id : op.inputs) {
      EXPECT_FALSE(reordered.contains(id)) << net.plan().program.var(id).name;
    }
  }
  EXPECT_EQ(joined, 9 * (1 + 1 + 4));  // training, evaluation, gradients of four branches
}

// Every stream has one thread, as all operations have on one stream.
TEST(ParallelOnCpu, DeterministicGoogLeNet_TrainsToTheBitsOfOneStream) {
  const Threads threads(2);
  cpu::CpuDevice device({}, {.deterministic = true});
  GoogLeNet one(device, 1, std::nullopt), two(device, 2, std::nullopt);
  EXPECT_EQ(two.plan().compute_streams.size(), 2u);
  EXPECT_EQ(two.train(3), one.train(3));
}

// More than one thread for a stream: these are threads of pools of their own.
TEST(ParallelOnCpu, StreamsOfSeveralThreads_TrainToTheSameBitsInAnyOrder) {
  const Threads threads(4);
  cpu::CpuDevice device;
  GoogLeNet first(device, 2, 1), second(device, 2, 2);
  EXPECT_EQ(first.train(2), second.train(2));
}

TEST(ParallelOnCpu, StreamsThatRunTogether_ComputeWithTheirShareOfTheThreads) {
  for (const int all : {2, 4}) {
    const Threads threads(all);
    cpu::CpuDevice device;
    const auto a = device.make_stream(""), b = device.make_stream("");
    const std::vector<Stream*> both = {a.get(), b.get()};
    int counts[2] = {};
    device.run_together(both, [&] {
      for (int i = 0; i < 2; ++i) {
        HostStream::of(*both[i]).enqueue([count = &counts[i]] {
#pragma omp parallel
#pragma omp single
          *count = omp_get_num_threads();
        });
      }
    });
    EXPECT_EQ(counts[0], all / 2);
    EXPECT_EQ(counts[1], all / 2);
    EXPECT_EQ(omp_get_max_threads(), all);  // as before
  }
}

}  // namespace
}  // namespace fleet
