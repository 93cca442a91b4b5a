// Complete training runs on the emulated GPU, compared with the CPU: bytes through normalize_image,
// copies during the step, steps launched as graphs, updates.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <regex>

#include "backend/cuda/device.h"
#include "tensor/host.h"
#include "tests/engine/train/device_training.h"

namespace fleet {
namespace {

// The emulated GPU; counts launched graphs.
class CountingGpu : public cuda::CudaDevice {
 public:
  using CudaDevice::CudaDevice;
  std::unique_ptr<Recording> record(Stream& origin, const std::function<void()>& issue) override {
    return std::make_unique<Counted>(CudaDevice::record(origin, issue), &launches);
  }
  int launches = 0;

 private:
  struct Counted : Recording {
    Counted(std::unique_ptr<Recording> of, int* count) : whole(std::move(of)), launches(count) {}
    void launch(Stream& stream) override {
      ++*launches;
      whole->launch(stream);
    }
    std::unique_ptr<Recording> whole;
    int* launches;
  };
};

class EmulatedTrainer : public DeviceTrainingTest {
 protected:
  Job job(const std::vector<std::string>& overrides = {}) const {
    return make(R"({
      "model": {"name": "mlp", "num_classes": 4, "hidden": [16], "dropout": 0.2},
      "data": {"source": "synthetic", "batch_size": 8, "mean": [0.5], "std": [0.25],
               "image": {"channels": 1, "height": 6, "width": 6}, "augment": {"flip": true},
               "train": {"samples": 24}, "test": {"samples": 13}, "pixels": "uint8"},
      "optimizer": {"name": "momentum", "momentum": 0.9},
      "learning_rate": {"name": "polynomial", "base": 0.05},
      "train": {"epochs": 3, "fetch_every": 2}
    })",
                overrides);
  }

  static void expect_near(const Outcome& got, const Outcome& want, double tolerance) {
    ASSERT_EQ(got.parameters.size(), want.parameters.size());
    for (size_t i = 0; i < want.parameters.size(); ++i) {
      for (size_t k = 0; k < want.parameters[i].size(); ++k) {
        ASSERT_NEAR(got.parameters[i][k], want.parameters[i][k], tolerance) << i << ", " << k;
      }
    }
    EXPECT_EQ(got.result.steps, want.result.steps);
    EXPECT_NEAR(got.result.evaluation.mean_loss(), want.result.evaluation.mean_loss(), tolerance);
    EXPECT_EQ(got.result.evaluation.items(), want.result.evaluation.items());
  }
};

TEST_F(EmulatedTrainer, Mlp_FollowsTheCpu) {
  HostDevice cpu;
  cuda::CudaDevice gpu(0, {});
  expect_near(train(job(), gpu), train(job(), cpu), 1e-4);
}

TEST_F(EmulatedTrainer, WithAndWithoutGraph_AreTheSameBits) {
  CountingGpu gpu(0, {});
  const Outcome graph = train(job(), gpu);
  // 9 steps; the first is issued operation by operation.
  EXPECT_GE(gpu.launches, 8);
  gpu.launches = 0;
  const Outcome single = train(job({"train.cuda_graph=false"}), gpu);
  EXPECT_EQ(gpu.launches, 0);
  EXPECT_EQ(graph.parameters, single.parameters);
  EXPECT_EQ(graph.result.evaluation.loss(), single.result.evaluation.loss());
}

TEST_F(EmulatedTrainer, TooLittleMemory_SaysWhichBatchFitsAndItDoes) {
  cuda::CudaDevice gpu(0, {.memory_fraction = 0.0014});  // 11.5 MiB
  std::string message;
  try {
    train(job({"data.batch_size=50000"}), gpu);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
    message = error.what();
  }
  std::smatch found;
  ASSERT_TRUE(std::regex_search(message, found,
                                std::regex("batch_size=([0-9]+) would fit \\(it is 50000\\)")))
      << message;
  const std::string batch = found[1];
  const Outcome outcome = train(
      job({"data.batch_size=" + batch, "data.train.samples=" + batch, "train.epochs=1"}), gpu);
  EXPECT_EQ(outcome.result.steps, 1);
}

}  // namespace
}  // namespace fleet
