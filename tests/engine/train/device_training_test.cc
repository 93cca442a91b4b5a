// Training on devices other than the plain host: with concurrent copies, with bytes as input, with
// too little memory, and while searching for values that are not finite.
#include "tests/engine/train/device_training.h"

#include <gmock/gmock.h>

#include <cstdio>

#include "base/log.h"
#include "tests/engine/train/async_copy_device.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class DeviceTraining : public DeviceTrainingTest {
 protected:
  Job job(const std::vector<std::string>& overrides = {}) const {
    return make(R"({
      "model": {"name": "mlp", "num_classes": 4, "hidden": [32], "dropout": 0.2},
      "data": {"source": "synthetic", "batch_size": 16, "mean": [0.5], "std": [0.25],
               "image": {"channels": 1, "height": 8, "width": 8}, "augment": {"flip": true},
               "train": {"samples": 64}, "test": {"samples": 37}},
      "optimizer": {"name": "momentum", "momentum": 0.9},
      "learning_rate": {"name": "polynomial", "base": 0.05},
      "train": {"epochs": 3, "fetch_every": 3}
    })",
                overrides);
  }
};

TEST_F(DeviceTraining, ConcurrentCopies_TrainTheSameBits) {
  HostDevice direct;
  AsyncCopyDevice overlapped;
  const Outcome want = train(job({"data.pixels=float32"}), direct);
  const Outcome got = train(job({"data.pixels=float32"}), overlapped);
  EXPECT_EQ(got.parameters, want.parameters);
  EXPECT_EQ(got.result.evaluation.loss(), want.result.evaluation.loss());
  EXPECT_EQ(got.result.steps, 12);
}

TEST_F(DeviceTraining, BytesAsInput_TrainAsFloatsDo) {
  HostDevice device;
  const Outcome floats = train(job(), device);
  const Outcome bytes = train(job({"data.pixels=uint8"}), device);
  // The synthetic images are bytes, so that only the last bit of normalising may differ.
  EXPECT_NEAR(bytes.result.evaluation.mean_loss(), floats.result.evaluation.mean_loss(), 1e-4);
  ASSERT_EQ(bytes.parameters.size(), floats.parameters.size());
  for (size_t i = 0; i < floats.parameters.size(); ++i) {
    for (size_t k = 0; k < floats.parameters[i].size(); ++k) {
      ASSERT_NEAR(bytes.parameters[i][k], floats.parameters[i][k], 1e-4);
    }
  }
}

TEST_F(DeviceTraining, NanHunt_EndsTheJobWithTheOperationsName) {
  HostDevice device;
  try {
    train(job({"train.check_nan_inf=true", "data.std=1e-38"}), device);
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_THAT(error.where(), StartsWith("step "));
    EXPECT_EQ(error.next(), "lower learning_rate.base, or look at the data");
    EXPECT_EQ(exit_code_for(error.code()), 1);  // 2 would say that nothing was started
  }
}

// A host that has so many bytes and no more.
class SmallDevice : public HostDevice {
 public:
  explicit SmallDevice(size_t bytes) : bytes_(bytes) {}
  Buffer allocate(size_t bytes) override {
    if (*used_ + bytes > bytes_) {
      throw Error(ErrorCode::kNoMemory, std::to_string(bytes) + " bytes are wanted", "small:0");
    }
    *used_ += bytes;
    Buffer memory = HostDevice::allocate(bytes);
    void* data = memory.data();
    return Buffer(std::shared_ptr<void>(data,
                                        [memory, bytes, used = used_](void*) mutable {
                                          memory = {};
                                          *used -= bytes;
                                        }),
                  bytes);
  }
  DeviceMemory memory() const override { return {.total = bytes_, .available = bytes_ - *used_}; }

 private:
  size_t bytes_;
  std::shared_ptr<size_t> used_ = std::make_shared<size_t>(0);
};

// Batch normalization of a last map of 1 x 1 needs two images.
TEST_F(DeviceTraining, NoMemoryForANetworkThatRefusesSmallBatches_IsStillSaid) {
  const Job tiny = make(R"({
      "model": {"name": "resnet20", "num_classes": 4},
      "data": {"source": "synthetic", "batch_size": 16, "train": {"samples": 64},
               "image": {"channels": 3, "height": 4, "width": 4}},
      "optimizer": {"name": "sgd"}
    })",
                        {"train.evaluate_every=0"});
  SmallDevice device(1000);
  EXPECT_THAT(thrown_by([&] { train(tiny, device); }), IsError(ErrorCode::kNoMemory, "small:0"));
  EXPECT_NE(spdlog::get_level(), spdlog::level::off);
}

// Four micro-batches are always of the same size.
TEST_F(DeviceTraining, TooLittleMemoryWithMicroBatches_SaysAWholeNumberOfThem) {
  SmallDevice device(60000);
  const Error error = thrown_by([&] {
    train(job({"data.batch_size=512", "strategy.pipeline=true",
               "strategy.pipeline_configs.accumulate_steps=4"}),
          device);
  });
  const std::string next = error.next();
  int fits = 0;
  ASSERT_EQ(std::sscanf(next.c_str(), "data.batch_size=%d would fit", &fits), 1) << next;
  EXPECT_GT(fits, 0);
  EXPECT_EQ(fits % 4, 0);
}

TEST_F(DeviceTraining, TooLittleMemory_SaysWhichBatchFitsAndItDoes) {
  std::string fits;
  {
    SmallDevice device(60000);
    try {
      train(job({"data.batch_size=512"}), device);
      FAIL() << "trained";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
      EXPECT_EQ(error.where(), "small:0");
      EXPECT_THAT(what, HasSubstr("would fit (it is 512)"));
      const size_t at = what.find("data.batch_size=");
      ASSERT_NE(at, std::string::npos);
      fits = what.substr(at, what.find(' ', at) - at);
    }
  }
  SmallDevice device(60000);
  EXPECT_EQ(train(job({fits, "train.max_steps=1"}), device).result.steps, 1);
  const int64_t batch = std::stoll(fits.substr(fits.find('=') + 1));
  EXPECT_THROW(train(job({"data.batch_size=" + std::to_string(batch + 1)}), device), Error);
}

}  // namespace
}  // namespace fleet
