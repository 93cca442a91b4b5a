// Data that cannot be read for a while. The time is made up: no test waits.
#include "data/storage.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "data/image_files.h"
#include "data/pipeline.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using testing::copy_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 200;

// A source of black images, and the time that its readers see. Reading fails with error_of(sample,
// now), unless that is 0.
struct FailingSource : Source {
  using ErrorAt = std::function<int(int64_t sample, double now)>;
  struct State {
    ErrorAt error_of;
    std::atomic<double> now{0};
    std::atomic<int> reads{0};
  };
  explicit FailingSource(std::shared_ptr<State> its) : state(std::move(its)) {}
  int64_t size() const override { return kSamples; }
  int64_t label(int64_t) const override { return 0; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override {
    ++state->reads;
    const int error = state->error_of(index, state->now);
    if (error != 0) {
      const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
      throw SystemError(code, "cannot open the file", error, name(index));
    }
    scratch.assign(4, 0);
    return {.bytes = scratch, .encoded = false, .height = 2, .width = 2, .channels = 1};
  }
  std::string name(int64_t index) const override { return "away/" + std::to_string(index); }
  std::shared_ptr<State> state;
};

class Storage : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<InputPipeline> pipeline(FailingSource::ErrorAt error_of, double timeout = 60,
                                          bool fail_on_damaged = false) {
    state_->error_of = std::move(error_of);
    const Settings none = testing::settings_of("synthetic", R"({"image": {"channels": 1,
        "height": 2, "width": 2}, "train": {"samples": 1}})")
                              .section("augment");
    const ImageShape image{1, 2, 2};
    InputPipeline::Options options{.sampler = {.batch = 10, .shuffle = false},
                                   .image = image,
                                   .threads = 3,
                                   .async = GetParam(),
                                   .fail_on_damaged = fail_on_damaged,
                                   .read_timeout = timeout};
    options.clock = clock();
    auto made = std::make_unique<InputPipeline>(std::make_unique<FailingSource>(state_),
                                                AugmentChain(none, true, image, {0}, {1}), options);
    made->start_epoch(0);
    return made;
  }
  WaitClock clock() const {
    return {.now = [state = state_] { return state->now.load(); },
            .sleep =
                [state = state_](double seconds) {
                  state->now.fetch_add(seconds);
                  std::this_thread::yield();
                }};
  }
  std::shared_ptr<FailingSource::State> state_ = std::make_shared<FailingSource::State>();
};

INSTANTIATE_TEST_SUITE_P(SyncAndAsync, Storage, ::testing::Bool());

int64_t in_all(InputPipeline& pipeline) {
  int64_t real = 0;
  for (const testing::Copy& batch : testing::rest_of(pipeline)) real += batch.real;
  return real;
}

// Whether files are replaced or end the job.
TEST_P(Storage, AwayForAWhile_LosesNoSample) {
  for (const int error : {ENOENT, ESTALE, EIO, ETIMEDOUT, EACCES}) {
    for (const bool fail : {false, true}) {
      state_->now = 0;
      const std::string log = captured_log([&] {
        const auto made =
            pipeline([&](int64_t, double now) { return now < 30 ? error : 0; }, 60, fail);
        EXPECT_EQ(in_all(*made), kSamples);
        EXPECT_THAT(made->damaged(), ElementsAre());
      });
      EXPECT_GE(state_->now, 30);
      // Away, and there again. A thread may notice the former after the latter.
      const auto lines = std::count(log.begin(), log.end(), '\n');
      EXPECT_GE(lines, 2) << log;
      EXPECT_LE(lines, GetParam() ? 2 * 3 : 2) << log;
      EXPECT_THAT(log, HasSubstr("data.read_timeout"));
    }
  }
}

TEST_P(Storage, AwayInTheMiddle_LosesNoSample) {
  const auto made = pipeline([state = state_.get()](int64_t, double now) {
    return state->reads > 90 && now < 30 ? ENOENT : 0;
  });
  EXPECT_EQ(in_all(*made), kSamples);
  EXPECT_THAT(made->damaged(), ElementsAre());
  EXPECT_GE(state_->now, 30);
}

TEST_P(Storage, AwayForLonger_IsAnErrorThatRestarts) {
  for (const bool fail : {false, true}) {
    state_->now = 0;
    const auto made = pipeline([](int64_t, double) { return ENOENT; }, 60, fail);
    const Error error = thrown_by([&] { made->next(); });
    EXPECT_THAT(error, IsError(ErrorCode::kIo, HasSubstr("away/")));
    EXPECT_EQ(exit_code_for(error.code()), 1);
    EXPECT_GE(state_->now, 60);
    EXPECT_LT(state_->now, 100);  // once for all readers
  }
}

TEST_P(Storage, WithoutALimit_IsWaitedForLong) {
  const auto made = pipeline([](int64_t, double now) { return now < 1e3 ? ESTALE : 0; }, 0);
  EXPECT_EQ(in_all(*made), kSamples);
}

TEST_P(Storage, OneFileThatIsGone_IsReplacedAtOnce) {
  const auto made = pipeline([](int64_t sample, double) { return sample == 4 ? ENOENT : 0; });
  EXPECT_EQ(copy_of(*made->next()).samples[4], 5);
  EXPECT_EQ(state_->now, 0);
  EXPECT_THAT(made->damaged(), ElementsAre(4));
}

TEST_P(Storage, OneErrorThatPasses_IsNoDamage) {
  for (const int error : {ESTALE, EIO, ETIMEDOUT}) {
    state_->now = 0;
    const auto made =
        pipeline([&](int64_t sample, double now) { return sample == 4 && now < 0.5 ? error : 0; });
    EXPECT_EQ(in_all(*made), kSamples);
    EXPECT_THAT(made->damaged(), ElementsAre());
  }
}

TEST_P(Storage, OneErrorThatStays_IsDamage) {
  auto made = pipeline([](int64_t sample, double) { return sample == 4 ? EIO : 0; });
  EXPECT_EQ(copy_of(*made->next()).samples[4], 5);
  EXPECT_THAT(made->damaged(), ElementsAre(4));
  EXPECT_LT(state_->now, 60);
  made.reset();
  const auto failing =
      pipeline([](int64_t sample, double) { return sample == 4 ? EIO : 0; }, 60, true);
  EXPECT_THAT(thrown_by([&] { failing->next(); }), IsUsageError("away/4"));
}

// A folder on a file system of its own, with more images than are replaced in a row.
TEST_P(Storage, LargePartAway_IsWaitedFor) {
  const auto away = [](int64_t sample, double now) {
    return sample >= 40 && sample < 180 && now < 20 ? ENOENT : 0;
  };
  auto made = pipeline(away);
  EXPECT_EQ(in_all(*made), kSamples);
  EXPECT_THAT(made->damaged(), ::testing::SizeIs(::testing::Lt(100)));
  made.reset();
  state_->now = 0;
  const auto gone =
      pipeline([](int64_t sample, double) { return sample >= 40 && sample < 180 ? ENOENT : 0; });
  EXPECT_THAT(thrown_by([&] { in_all(*gone); }), IsError(ErrorCode::kIo, HasSubstr("away/")));
}

TEST_P(Storage, WaitForIt_EndsWithThePipeline) {
  auto made = pipeline([](int64_t, double) { return ENOENT; }, 0);
  while (state_->reads == 0 && GetParam()) std::this_thread::yield();
  std::atomic<int> stop{15};
  EXPECT_EQ(made->next(&stop), nullptr);
  EXPECT_FALSE(made->at_end());
  made->start_epoch(1);  // with readers that wait
  made.reset();
}

// Images that were never there.
TEST(StorageStart, PredictionOfMissingFiles_DoesNotWait) {
  testing::TempFolder folder;
  std::vector<ImageFile> files;
  for (int i = 0; i < 5; ++i) files.push_back({folder / (std::to_string(i) + ".jpg"), 0});
  const Settings data = testing::settings_of(
      "synthetic",
      R"({"image": {"channels": 3, "height": 8, "width": 8}, "train": {"samples": 1}})");
  auto pipeline =
      make_prediction_pipeline(data, std::make_unique<ImageFiles>(files), {3, 8, 8}, {});
  pipeline->start_epoch(0);
  const Batch* batch = pipeline->next();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->weights, Each(0));
}

TEST(StorageStart, ErrorThatPasses_IsTriedAgain) {
  double now = 0;
  const WaitClock clock{.now = [&] { return now; }, .sleep = [&](double time) { now += time; }};
  const auto open = [&](int error, double until) {
    return [&now, error, until] {
      if (now < until) throw SystemError(ErrorCode::kIo, "cannot open", error, "a.tar");
    };
  };
  for (const int error : {ESTALE, EIO, ETIMEDOUT}) {
    now = 0;
    wait_for_storage(60, open(error, 30), clock);
    EXPECT_GE(now, 30);
    now = 0;
    EXPECT_THAT(thrown_by([&] { wait_for_storage(60, open(error, 1e9), clock); }),
                IsError(ErrorCode::kIo, "a.tar"));
    EXPECT_GE(now, 60);
  }
  now = 0;
  wait_for_storage(0, open(ESTALE, 1e4), clock);
  for (const int error : {ENOENT, EACCES, ENOTDIR}) {  // a mistake in the job file
    now = 0;
    EXPECT_THAT(thrown_by([&] { wait_for_storage(60, open(error, 30), clock); }),
                IsError(ErrorCode::kIo, "a.tar"));
    EXPECT_EQ(now, 0);
  }
}

}  // namespace
}  // namespace fleet::data
