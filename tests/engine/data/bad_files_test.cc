// Files that cannot be read: replaced and named, never the end of a job.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::AllOf;
using testing::copy_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::settings_of;
using testing::TempFolder;

std::string json(const TempFolder& folder, const std::string& more) {
  return R"({"root": ")" + folder.path() + R"(", "batch_size": 8, "shuffle": false,
             "image": {"channels": 3, "height": 8, "width": 8}, )" +
         more + "}";
}

void write_list(const TempFolder& folder, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    testing::write(folder / name, testing::jpeg_picture(8, 8, i));
    list += name + " " + std::to_string(i % 3) + "\n";
  }
  testing::write(folder / "list.txt", list);
}

// The log of `body`, which goes to standard error.
std::string log_of(const std::function<void()>& body) {
  ::testing::internal::CaptureStderr();
  set_up_logging("INFO", "test");
  body();
  return ::testing::internal::GetCapturedStderr();
}

// If a file was removed or replaced after the start, the next image is trained instead.
TEST(BadFiles, FileThatChangedAfterTheStart_IsReplacedAndNamed) {
  TempFolder folder;
  write_list(folder, 8);
  auto pipeline = make_pipeline(
      settings_of("image_list", json(folder, R"("threads": 2, "train": {"list": "list.txt"})")),
      true, {});
  for (int i : {1, 2, 3, 4, 5}) std::filesystem::remove(folder / (std::to_string(i) + ".jpg"));
  std::filesystem::create_directory(folder / "1.jpg");
  ASSERT_EQ(::mkfifo((folder / "2.jpg").c_str(), 0600), 0);
  std::filesystem::create_symlink("nothing", folder / "3.jpg");
  std::filesystem::create_symlink("/dev/zero", folder / "4.jpg");
  const std::string log = log_of([&] {
    pipeline->start_epoch(0);
    const testing::Copy batch = copy_of(*pipeline->next());
    EXPECT_THAT(batch.samples, ElementsAre(0, 6, 6, 6, 6, 6, 6, 7));
    EXPECT_THAT(batch.labels, ElementsAre(0, 0, 0, 0, 0, 0, 0, 1));
    EXPECT_EQ(batch.real, 8);
  });
  EXPECT_EQ(pipeline->stats().damaged, 5);
  EXPECT_THAT(pipeline->damaged(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(log, AllOf(HasSubstr("1.jpg: damaged image (it is a folder"),
                         HasSubstr("the next image replaces it")));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 5) << "a line for each\n" << log;
}

// It is not damaged: to replace it would train with a part of the data.
TEST(BadFiles, ImageOfAnotherSize_EndsTrainingAndEvaluation) {
  TempFolder folder;
  write_list(folder, 8);
  testing::write(folder / "6.jpg", testing::jpeg_picture(9, 8));
  for (const bool train : {true, false}) {
    for (const std::string threads : {R"("async": false)", R"("threads": 2)"}) {
      auto pipeline =
          make_pipeline(settings_of("image_list", json(folder, threads + R"(, "on_damaged": "skip",
              "train": {"list": "list.txt"}, "test": {"list": "list.txt"})")),
                        train, {});
      const std::string log = log_of([&] {
        pipeline->start_epoch(0);
        const Error error = thrown_by([&] { pipeline->next(); });
        EXPECT_THAT(error, IsUsageError(folder / "6.jpg"));
        EXPECT_THAT(error.failure(), AllOf(HasSubstr("of another size"), HasSubstr("9x8")));
      });
      EXPECT_EQ(log.find("damaged"), std::string::npos) << log;
      EXPECT_TRUE(pipeline->damaged().empty());
    }
  }
}

TEST(BadFiles, FirstImageBroken_SizesAreThoseOfTheNext) {
  TempFolder folder;
  write_list(folder, 3);
  testing::write(folder / "0.jpg", "x");
  const auto settings = settings_of(
      "image_list", R"({"root": ")" + folder.path() + R"(", "train": {"list": "list.txt"}})");
  EXPECT_EQ(make_pipeline(settings, true, {})->image(), (ImageShape{3, 8, 8}));
}

// As many for every number of ranks: each damaged one once.
TEST(BadFiles, DamagedSamples_AreTheSameForEveryNumberOfRanks) {
  TempFolder folder;
  write_list(folder, 24);
  for (int i : {0, 5, 6, 7, 16, 23}) testing::write(folder / (std::to_string(i) + ".jpg"), "x");
  const auto damaged = [&](int ranks) {
    std::set<int64_t> all;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string more = R"("threads": 3, "shuffle": true, "train": {"list": "list.txt"},
                                  "batch_size": )" +
                               std::to_string(12 / ranks);
      auto pipeline = make_pipeline(
          settings_of("image_list", R"({"root": ")" + folder.path() + R"(", )" + more +
                                        R"(, "image": {"height": 8, "width": 8}})"),
          true, {.rank = rank, .ranks = ranks, .seed = 3});
      pipeline->start_epoch(0);
      pipeline->next();  // half of an epoch: what is made ahead does not count
      const std::vector<int64_t> mine = pipeline->damaged();
      all.insert(mine.begin(), mine.end());
    }
    return all;
  };
  const auto alone = damaged(1);
  EXPECT_FALSE(alone.empty());
  for (int ranks : {2, 3, 4}) EXPECT_EQ(damaged(ranks), alone) << ranks << " ranks";
}

TEST(BadFiles, FolderEntriesThatAreNoFiles_AreSeenAtTheStart) {
  TempFolder folder;
  for (const std::string name : {"a", "b"}) {
    testing::write(folder / ("train/" + name + "/1.jpg"), testing::jpeg_picture(8, 8));
  }
  std::filesystem::create_symlink("nothing", folder / "train/a/0.jpg");
  ASSERT_EQ(::mkfifo((folder / "train/b/0.jpg").c_str(), 0600), 0);
  const auto make = [&](const std::string& more) {
    return make_pipeline(
        settings_of("image_folder", json(folder, R"("test": {"folder": ""})" + more)), true, {});
  };
  EXPECT_THAT(thrown_by([&] { make(R"(, "on_damaged": "fail")"); }),
              IsUsageError(folder / "train"));
  std::unique_ptr<InputPipeline> pipeline;
  EXPECT_THAT(log_of([&] { pipeline = make(""); }),
              HasSubstr("/train/a/0.jpg; other images replace"));
  pipeline->start_epoch(0);
  EXPECT_THAT(copy_of(*pipeline->next()).labels, ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
}

// Names of files are other people's choice, and may hold what a terminal obeys.
TEST(BadFiles, NamesInTheLog_AreOneHarmlessLine) {
  TempFolder folder;
  const std::string evil = "\x1b[2J\nERROR you are root\x9b.jpg";
  testing::write(folder / ("train/a\x1b]0;x\x07/" + evil), "x");
  testing::write(folder / ("train/a\x1b]0;x\x07/" + evil + "x.\x1b[1m"), "x");
  testing::write(folder / "train/b/1.jpg", testing::jpeg_picture(8, 8));
  const std::string log = log_of([&] {
    auto pipeline = make_pipeline(
        settings_of("image_folder", json(folder, R"("test": {"folder": ""})")), true, {});
    pipeline->start_epoch(0);
    pipeline->next();
  });
  EXPECT_THAT(log, HasSubstr("\\x1b[2J\\nERROR you are root\\x9b.jpg: "));
  EXPECT_EQ(log.find_first_of("\x1b\x07"), std::string::npos) << log;
  EXPECT_EQ(log.find("\nERROR"), std::string::npos) << log;
  const std::string refusal = message_of([&] {
    make_pipeline(settings_of("image_folder",
                              json(folder, R"("test": {"folder": ""}, "on_damaged": "fail")")),
                  true, {.classes = 1});
  });
  EXPECT_EQ(refusal.find('\x1b'), std::string::npos) << refusal;
}

// A source of black images whose sample `stuck` cannot be read before release(), as on a dead
// mount.
class StuckSource : public Source {
 public:
  explicit StuckSource(int64_t stuck) : stuck_(stuck) {}
  int64_t size() const override { return 12; }
  int64_t label(int64_t) const override { return 0; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override {
    if (index == stuck_) {
      std::unique_lock lock(gate().mutex);
      ++gate().waiting;
      gate().changed.notify_all();
      gate().changed.wait(lock, [] { return gate().open; });
      --gate().waiting;
      gate().changed.notify_all();
    }
    scratch.assign(4, static_cast<uint8_t>(index));
    return {.bytes = scratch, .encoded = false, .height = 2, .width = 2, .channels = 1};
  }
  std::string name(int64_t index) const override { return "stuck/" + std::to_string(index); }

  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    int waiting = 0;
  };
  static Gate& gate() {
    static Gate gate;
    return gate;
  }
  static void wait_for_reader() {
    std::unique_lock lock(gate().mutex);
    gate().changed.wait(lock, [] { return gate().waiting > 0; });
  }
  // The threads that were left behind end before the test does.
  static void release() {
    std::unique_lock lock(gate().mutex);
    gate().open = true;
    gate().changed.notify_all();
    gate().changed.wait(lock, [] { return gate().waiting == 0; });
    gate().open = false;
  }

 private:
  int64_t stuck_;
};

std::unique_ptr<InputPipeline> stuck_pipeline(int threads, double timeout) {
  const Settings eval = settings_of("synthetic", R"({"image": {"channels": 1, "height": 2,
      "width": 2}, "train": {"samples": 1}})")
                            .section("augment");
  const ImageShape image{1, 2, 2};
  return std::make_unique<InputPipeline>(
      std::make_unique<StuckSource>(4), AugmentChain(eval, true, image, {0}, {1}),
      InputPipeline::Options{.sampler = {.batch = 3, .shuffle = false},
                             .image = image,
                             .threads = threads,
                             .read_timeout = timeout});
}

TEST(BadFiles, ReadThatDoesNotEnd_IsGivenUpAndNamed) {
  for (int threads : {1, 3}) {
    const std::string log = log_of([&] {
      // Longer than a thread may wait for a core while it reads an image that comes at once.
      auto pipeline = stuck_pipeline(threads, 0.25);
      for (int epoch = 0; epoch < 2; ++epoch) {
        pipeline->start_epoch(epoch);
        EXPECT_THAT(copy_of(*pipeline->next()).samples, ElementsAre(0, 1, 2));
        EXPECT_THAT(copy_of(*pipeline->next()).samples, ElementsAre(3, 5, 5));
        EXPECT_THAT(copy_of(*pipeline->next()).samples, ElementsAre(6, 7, 8));
      }
      EXPECT_THAT(pipeline->damaged(), ElementsAre(4));
    });
    EXPECT_THAT(log, AllOf(HasSubstr("stuck/4: damaged image"), HasSubstr("0.25 s")));
    StuckSource::release();
  }
}

// SIGTERM while a dead mount holds up the next batch.
TEST(BadFiles, StopWhileAReadDoesNotEnd_IsSeen) {
  auto pipeline = stuck_pipeline(2, 0);
  pipeline->start_epoch(0);
  ASSERT_NE(pipeline->next(), nullptr);
  StuckSource::wait_for_reader();
  std::atomic<int> stop{15};
  EXPECT_EQ(pipeline->next(&stop), nullptr);
  EXPECT_FALSE(pipeline->at_end());
  pipeline.reset();  // does not wait for the reader forever
  StuckSource::release();
}

// Each sample takes long, but comes.
class SlowSource : public Source {
 public:
  int64_t size() const override { return 50; }
  int64_t label(int64_t) const override { return 0; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    scratch.assign(4, static_cast<uint8_t>(index));
    return {.bytes = scratch, .encoded = false, .height = 2, .width = 2, .channels = 1};
  }
  std::string name(int64_t index) const override { return "slow/" + std::to_string(index); }
};

// Otherwise other ranks, which have their parts of it, would train with a placeholder batch.
TEST(BadFiles, StopWhileABatchIsBeingMade_WaitsForIt) {
  const Settings eval = settings_of("synthetic", R"({"image": {"channels": 1, "height": 2,
      "width": 2}, "train": {"samples": 1}})")
                            .section("augment");
  const ImageShape image{1, 2, 2};
  InputPipeline pipeline(
      std::make_unique<SlowSource>(), AugmentChain(eval, true, image, {0}, {1}),
      InputPipeline::Options{
          .sampler = {.batch = 50, .shuffle = false}, .image = image, .threads = 1});
  pipeline.start_epoch(0);
  std::atomic<int> stop{15};
  EXPECT_NE(pipeline.next(&stop), nullptr);
}

// In place of a batch that could not be made.
TEST(BadFiles, StandIn_WeighsNothing) {
  TempFolder folder;
  write_list(folder, 8);
  testing::write(folder / "3.jpg", "x");
  auto pipeline = make_pipeline(settings_of("image_list", json(folder, R"("on_damaged": "fail",
                                                             "train": {"list": "list.txt"})")),
                                true, {.ignored_label = -7});
  pipeline->start_epoch(0);
  EXPECT_THAT(thrown_by([&] { pipeline->next(); }), IsUsageError(folder / "3.jpg"));
  const testing::Copy batch = copy_of(*pipeline->placeholder_batch());
  EXPECT_THAT(batch.labels, ::testing::Each(-7));
  EXPECT_THAT(batch.weights, ::testing::Each(0));
  EXPECT_THAT(batch.images, ::testing::Each(0));
}

}  // namespace
}  // namespace fleet::data
