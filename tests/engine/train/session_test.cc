#include "train/session.h"

#include <gmock/gmock.h>

#include "models/model.h"
#include "tensor/host.h"
#include "tests/errors.h"

namespace fleet {
namespace {

// Cannot be built for less than 16 samples.
FLEET_MODEL(needs_16_samples) {
  def.help = "a test";
  def.image = {1, 8, 8};
  def.schema = model_schema(4);
  def.build = image_classifier([](Network& network, VarId image, const Settings&) {
    const Program& program = network.program();
    if (program.var(image).shape[0] < 16) {
      throw Error(ErrorCode::kUsage, "needs 16 samples", "needs_16_samples");
    }
    return network.linear("fc", network.flatten(image), {.features = 4});
  });
}

// Has `bytes`, of which nothing can be allocated.
class SmallDevice : public HostDevice {
 public:
  explicit SmallDevice(size_t bytes) : bytes_(bytes) {}
  DeviceMemory memory() const override { return {.available = bytes_}; }
  Buffer allocate(size_t) override { throw Error(ErrorCode::kNoMemory, "no memory", "small"); }

 private:
  const size_t bytes_;
};

// The error of a job with batches of 64 samples.
Error failure(const std::string& model, size_t bytes) {
  const Job job =
      make_job(ConfigTree::from_json(R"({"model": {"name": ")" + model + R"(", "num_classes": 4},
          "data": {"source": "synthetic", "batch_size": 64,
                   "image": {"channels": 1, "height": 8, "width": 8}},
          "optimizer": {"name": "sgd"}, "learning_rate": {"name": "constant", "base": 0.1}})",
                                     "test"));
  SmallDevice device(bytes);
  return thrown_by([&] { Session(job, {.columns = image_columns({1, 8, 8})}, device, nullptr); });
}

TEST(Session, TooLittleMemory_NamesTheBatchThatFits) {
  const Error error = failure("needs_16_samples", size_t{1} << 30);
  EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
  EXPECT_EQ(error.next(), "data.batch_size=63 would fit (it is 64)");
}

// It was told that not even a batch of 1 would fit.
TEST(Session, DeviceThatReportsNoMemory_CountsThatOfTheMachine) {
  EXPECT_THAT(failure("mlp", 0).next(), testing::HasSubstr("would fit (it is 64)"));
}

TEST(Session, TooLittleMemoryForAnyBatch_SaysSo) {
  const Error error = failure("mlp", 100);
  EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
  EXPECT_THAT(error.next(), testing::HasSubstr("not even data.batch_size=1 would fit"));
}

// It was told as if a batch of 1 had been tried.
TEST(Session, BatchThatCannotBePlanned_IsNamedWithTheReason) {
  const Error error = failure("needs_16_samples", 100);
  EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
  EXPECT_THAT(error.failure(), testing::HasSubstr("a batch of 1 cannot be planned: "));
  EXPECT_THAT(error.failure(), testing::HasSubstr("needs 16 samples"));
}

}  // namespace
}  // namespace fleet
