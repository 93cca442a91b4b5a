#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>

#include "base/crc32c.h"
#include "base/file.h"
#include "data/decode.h"
#include "proto/tensorboard.pb.h"
#include "tests/captured_log.h"
#include "tests/engine/train/trainer_job.h"
#include "train/tensorboard_file.h"
#include "train/tensorboard_log.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using tensorboard::Event;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t unmasked(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The whole records of a file; checks each checksum.
std::vector<Event> records_of(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<Event> events;
  for (size_t at = 0; at + 12 <= bytes.size();) {
    const size_t length = number_at(bytes, at);
    EXPECT_EQ(number_at(bytes, at + 4), 0u);  // the upper half
    EXPECT_EQ(unmasked(number_at(bytes, at + 8)), crc32c(bytes.substr(at, 8)));
    if (at + 16 + length > bytes.size()) break;
    const std::string content = bytes.substr(at + 12, length);
    EXPECT_EQ(unmasked(number_at(bytes, at + 12 + length)), crc32c(content));
    EXPECT_TRUE(events.emplace_back().ParseFromString(content));
    at += 16 + length;
  }
  return events;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::vector<Event> events_in(const std::string& folder) {
  std::vector<Event> all;
  for (const std::string& file : files_in(folder)) {
    std::ranges::move(records_of(file), std::back_inserter(all));
  }
  return all;
}

using Scalars = std::map<std::pair<std::string, int64_t>, float>;
Scalars scalars_of(const std::vector<Event>& events) {
  Scalars scalars;
  for (const Event& event : events) {
    for (const auto& value : event.summary().value()) {
      if (value.has_simple_value()) scalars[{value.tag(), event.step()}] = value.simple_value();
    }
  }
  return scalars;
}

TEST(TensorboardRecord, Content_IsFramed) {
  const std::string record = tensorboard_record("abc");
  EXPECT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  // TensorFlow's own test vector: crc32c of "abc" masked.
  EXPECT_EQ(unmasked(number_at(record, 15)), 0x364b3fb7u);
}

TEST(TensorboardScalars, EachKindOfValue_HasItsTag) {
  EventLine line("train");
  line.add("step", 7)
      .add("loss", 0.5)
      .add("bad", std::nan(""))
      .add("big", int64_t{1} << 40)
      .add("last", true)
      .add("list", std::vector<double>{1, 2})
      .add("name", "\u4e2d");
  Event event;
  ASSERT_TRUE(event.ParseFromString(tensorboard_scalars(line, 12.5)));
  EXPECT_EQ(event.wall_time(), 12.5);
  EXPECT_EQ(event.step(), 7);
  Scalars scalars = scalars_of({event});
  EXPECT_TRUE(std::isnan(scalars.at({"train/bad", 7})));
  scalars.erase({"train/bad", 7});
  EXPECT_EQ(scalars, (Scalars{{{"train/loss", 7}, 0.5f},
                              {{"train/big", 7}, 1099511627776.f},
                              {{"train/last", 7}, 1.f},
                              {{"train/list/0", 7}, 1.f},
                              {{"train/list/1", 7}, 2.f}}));
  const auto& text = event.summary().value(event.summary().value_size() - 1);
  EXPECT_EQ(text.tag(), "train/name");
  EXPECT_EQ(text.metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(text.tensor().string_val(0), "\u4e2d");
  EXPECT_EQ(tensorboard_scalars(EventLine("empty").add("step", 3), 1), "");
}

TEST(TensorboardHistogram, Buckets_HoldTheValues) {
  Event event;
  ASSERT_TRUE(event.ParseFromString(
      tensorboard_histogram("n", std::vector<double>{1, 1.01, 50, 0, std::nan("")}, 3, 1)));
  const auto& histogram = event.summary().value(0).histo();
  EXPECT_EQ(histogram.num(), 4);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 50);
  EXPECT_NEAR(histogram.sum(), 52.01, 1e-9);
  ASSERT_EQ(histogram.bucket_size(), histogram.bucket_limit_size());
  double count = 0;
  for (int i = 0; i < histogram.bucket_size(); ++i) {
    count += histogram.bucket(i);
    if (i == 0) continue;
    EXPECT_GT(histogram.bucket_limit(i), histogram.bucket_limit(i - 1));
  }
  EXPECT_EQ(count, 4);
  EXPECT_GE(histogram.bucket_limit(histogram.bucket_size() - 1), 50);
  EXPECT_EQ(tensorboard_histogram("n", {}, 3, 1), "");
}

class TensorboardTest : public TrainerTest {
 protected:
  std::string folder() const { return output_ + "/tensorboard"; }
};

TEST_F(TensorboardTest, EveryNumberOfMetrics_IsThere) {
  run(job({"train.evaluate_classes=true"}), 2);
  const Scalars scalars = scalars_of(events_in(folder()));
  size_t checked = 0;
  for (const char* kind : {"start", "train", "ranks", "test", "summary"}) {
    for (const auto& line : events(kind)) {
      const int64_t step = line.contains("step") ? line["step"] : line["steps"];
      for (const auto& [name, value] : line.items()) {
        if (name == "time" || name == "step") continue;
        const auto expect = [&](const std::string& tag, const nlohmann::json& number) {
          if (!number.is_number()) return;
          ++checked;
          const auto found = scalars.find({std::string(kind) + "/" + tag, step});
          ASSERT_NE(found, scalars.end()) << kind << "/" << tag << " of step " << step;
          EXPECT_EQ(found->second, number.get<float>()) << tag;
        };
        if (!value.is_array()) expect(name, value);
        for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
          expect(name + "/" + std::to_string(i), value[i]);
        }
      }
    }
  }
  EXPECT_GT(checked, 60u);
}

TEST_F(TensorboardTest, FirstBatch_IsShown) {
  run(job({}), 1);
  std::set<std::string> tags;
  for (const Event& event : events_in(folder())) {
    for (const auto& value : event.summary().value()) {
      if (!value.has_image()) continue;
      tags.insert(value.tag());
      EXPECT_EQ(event.step(), 0);
      EXPECT_EQ(value.image().width(), 8);
      EXPECT_EQ(value.image().colorspace(), 1);
      EXPECT_TRUE(value.image().encoded_image_string().starts_with("\x89PNG"));
    }
  }
  EXPECT_THAT(tags, SizeIs(8));
}

TEST(ShownPixels, Normalisation_IsUndone) {
  ConfigTree tree = ConfigTree::from_json(
      R"({"model": {"name": "mlp", "num_classes": 4}, "data": {"source": "synthetic", "batch_size": 2,
          "train": {"samples": 4}, "mean": [0.5, 0.25, 0], "std": [0.5, 0.25, 1]}})",
      "test");
  const Job job = make_job(tree);
  std::vector<float> images = {0, 1, -1, 3, 0.2f, 9};  // 1 x 2 pixels of three channels
  data::Batch batch;
  batch.image = {3, 1, 2};
  batch.images = images;
  EXPECT_THAT(shown_pixels(batch, 0, job.data), ElementsAre(128, 0, 51, 255, 255, 255));
  std::vector<uint8_t> pixels = {1, 2, 3, 0, 4, 5, 6, 0}, flips = {1};
  batch.images = {};
  batch.pixels = pixels;
  batch.flips = flips;
  EXPECT_THAT(shown_pixels(batch, 0, job.data), ElementsAre(4, 5, 6, 1, 2, 3));
}

// The histograms of norms in the folder; checks that each has those of so many gradients: of two
// weights and two biases.
size_t histograms_in(const std::string& folder, int gradients = 4) {
  size_t histograms = 0;
  for (const Event& event : events_in(folder)) {
    for (const auto& value : event.summary().value()) {
      if (!value.has_histo()) continue;
      ++histograms;
      EXPECT_EQ(value.tag(), "gradients/norm");
      EXPECT_EQ(value.histo().num(), gradients);
      EXPECT_GT(value.histo().min(), 0);
      EXPECT_LT(value.histo().max(), 100);
    }
  }
  return histograms;
}

TEST_F(TensorboardTest, Gradients_AreWrittenOnRequest) {
  run(job({"train.tensorboard_gradients=true", "train.max_steps=3"}), 2);
  EXPECT_EQ(histograms_in(folder()), 1u);
}

TEST_F(TensorboardTest, GradientsInBfloat16_AreWrittenToo) {
  run(job({"train.tensorboard_gradients=true", "train.max_steps=3", "strategy.amp=true"}), 1);
  EXPECT_EQ(histograms_in(folder()), 1u);
}

// The sums of gradient_merge are 0 after the update in step 2.
TEST_F(TensorboardTest, MergedGradients_AreTheSumsSoFar) {
  run(job({"train.tensorboard_gradients=true", "train.max_steps=3", "train.fetch_every=1",
           "strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"}),
      1);
  EXPECT_EQ(histograms_in(folder()), 2u);
}

// Rank 0 has only its own part of a gradient that rank 1 sums up.
TEST_F(TensorboardTest, GradientsOfReduceMode_AreThoseOfItsOwner) {
  run(job({"train.tensorboard_gradients=true", "train.max_steps=3",
           "strategy.build_strategy.reduce_strategy=Reduce"}),
      2);
  EXPECT_EQ(histograms_in(folder(), 2), 1u);
}

TEST_F(TensorboardTest, GradientsInMemory_ChangeNothing) {
  const Outcome plain = run(job({}), 2);
  fs::remove_all(output_);
  EXPECT_EQ(run(job({"train.tensorboard_gradients=true"}), 2).weights, plain.weights);
}

TEST_F(TensorboardTest, Off_WritesNothing) {
  run(job({"train.tensorboard=false"}), 1);
  EXPECT_THAT(files_in(folder()), IsEmpty());
}

TEST_F(TensorboardTest, ResumedRun_AppendsAFileThatSupersedes) {
  run(job({"train.max_steps=3"}), 1);
  ASSERT_THAT(files_in(folder()), SizeIs(1));
  run(job({"checkpoint.resume=auto"}), 1);
  const std::vector<std::string> files = files_in(folder());
  ASSERT_THAT(files, SizeIs(2));
  const std::vector<Event> second = records_of(files[1]);
  ASSERT_GT(second.size(), 2u);
  EXPECT_EQ(second[0].file_version(), "brain.Event:2");
  EXPECT_EQ(second[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(second[1].step(), 3);
}

TEST_F(TensorboardTest, NewRunInAFolder_SetsTheOldFilesAside) {
  run(job({}), 1);
  run(job({}), 1);
  EXPECT_THAT(files_in(folder()), SizeIs(1));
  EXPECT_THAT(files_in(folder() + ".1"), SizeIs(1));
}

TEST_F(TensorboardTest, KilledWriter_LeavesWholeRecords) {
  TensorboardFile file(folder(), 0);
  for (int i = 0; i < 10; ++i) {
    file.write(tensorboard_scalars(EventLine("train").add("step", i).add("loss", 1.0), i));
    // What a kill -9 right now would leave: everything that was written.
    EXPECT_THAT(records_of(file.path()), SizeIs(2 + i));
  }
}

TEST_F(TensorboardTest, FullDisk_WarnsOnceAndTrainingContinues) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::string log;
  TrainResult result;
  {
    const LogCapture capture;
    const Job quiet = job({"train.epochs=40", "train.fetch_every=1", "checkpoint.at_end=false"});
    const rlimit limit = {20'000, before.rlim_max};  // bytes of a file: the disk is full soon
    ::setrlimit(RLIMIT_FSIZE, &limit);
    result = run(quiet, 1).results[0];
    ::setrlimit(RLIMIT_FSIZE, &before);
    log = capture.captured_log();
  }
  EXPECT_EQ(result.steps, 160);
  size_t warnings = 0;
  for (size_t at = 0; (at = log.find("this line is lost", at)) != log.npos; ++at) {
    ++warnings;
  }
  EXPECT_EQ(warnings, 1u) << log;
  for (const std::string& path : files_in(folder())) {
    EXPECT_GT(records_of(path).size(), 0u);
    EXPECT_EQ(fs::file_size(path) > 0, true);
  }
}

}  // namespace
}  // namespace fleet
