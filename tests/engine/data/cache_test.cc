// Decoded images in memory (data.cache), and readers that tune themselves.
#include <gmock/gmock.h>

#include <filesystem>
#include <thread>

#include "data/image_cache.h"
#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

using testing::rest_of;
using testing::settings_of;

class Cache : public ::testing::Test {
 protected:
  // Images that a crop reduces, so that they would be decoded at half size without the cache.
  Cache() {
    std::string list;
    for (int i = 0; i < 20; ++i) {
      const std::string name = "image" + std::to_string(i) + ".jpg";
      testing::write(folder_ / name, testing::jpeg_picture(120 + i % 7, 110 - i % 5, i));
      list += name + " " + std::to_string(i % 4) + "\n";
    }
    testing::write(folder_ / "list.txt", list);
  }
  std::unique_ptr<InputPipeline> pipeline(const std::string& more, bool train = true,
                                          size_t cache_bytes = size_t{1} << 30) const {
    const std::string json = R"({"root": ")" + folder_.path() +
                             R"(", "image": {"channels": 3, "height": 24, "width": 20},
        "train": {"list": "list.txt"}, "test": {"list": "list.txt"}, "eval": {"resize": 28},
        "augment": {"random_resized_crop": true, "flip": true}, "batch_size": 5, )" +
                             more + "}";
    return make_pipeline(settings_of("image_list", json), train,
                         {.seed = 3, .cache_bytes = cache_bytes});
  }
  static std::vector<testing::Copy> epochs(InputPipeline& pipeline, int count) {
    std::vector<testing::Copy> all;
    for (int epoch = 0; epoch < count; ++epoch) {
      pipeline.start_epoch(epoch);
      for (auto& batch : rest_of(pipeline)) all.push_back(std::move(batch));
    }
    return all;
  }

  testing::TempFolder folder_;
};

TEST_F(Cache, FilesGoneAfterTheFirstEpoch_AreReadFromMemory) {
  auto cached = pipeline(R"("cache": "decoded", "threads": 3, "on_damaged": "fail")");
  epochs(*cached, 1);
  for (int i = 0; i < 20; ++i) fs::remove(folder_ / ("image" + std::to_string(i) + ".jpg"));
  cached->start_epoch(1);
  EXPECT_EQ(rest_of(*cached).size(), 4u);
}

// In the first epoch, in later ones, with a full cache and with an empty one.
TEST_F(Cache, Samples_DoNotDependOnWhatIsCached) {
  const auto all = epochs(*pipeline(R"("cache": "decoded")"), 3);
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(epochs(*pipeline(R"("cache": "decoded")", true, 200'000), 3), all);
  EXPECT_EQ(epochs(*pipeline(R"("cache": "decoded")", true, 1), 3), all);
  EXPECT_EQ(epochs(*pipeline(R"("cache": "decoded", "async": false)"), 3), all);
  auto late = pipeline(R"("cache": "decoded")");
  late->start_epoch(2);
  EXPECT_EQ(rest_of(*late)[0], all[8]);
  // Without it, large images are decoded at half size.
  EXPECT_NE(epochs(*pipeline(R"("cache": "none")"), 1)[0].images, all[0].images);
  EXPECT_EQ(epochs(*pipeline(R"("cache": "none")"), 1)[0].keys, all[0].keys);
}

TEST_F(Cache, Evaluation_IsTheSameAsWithout) {
  EXPECT_EQ(epochs(*pipeline(R"("cache": "decoded")", false), 2),
            epochs(*pipeline(R"("cache": "none")", false), 2));
}

TEST_F(Cache, DamagedImage_IsReplacedAsWithout) {
  testing::write(folder_ / "image7.jpg", "no image");
  const auto with = epochs(*pipeline(R"("cache": "decoded")"), 2);
  const auto without = epochs(*pipeline(R"("cache": "none")"), 2);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_EQ(with[i].samples, without[i].samples);
}

TEST(ImageCache, Full_SaysItOnceAndKeepsWhatItHas) {
  const std::vector<uint8_t> bytes(100 * 4 + 64, 7);
  const Pixels pixels{.data = bytes.data(), .step = 4, .stride = 40, .width = 10, .height = 10};
  ImageCache cache(5, 900);
  EXPECT_TRUE(cache.insert(0, pixels, 3));
  EXPECT_TRUE(cache.insert(1, pixels, 3));
  EXPECT_FALSE(cache.insert(2, pixels, 3));
  EXPECT_TRUE(cache.insert(3, pixels, 3));
  EXPECT_EQ(cache.images(), 2);
  EXPECT_LE(cache.bytes(), 900u);
  ASSERT_TRUE(cache.find(1));
  EXPECT_FALSE(cache.find(2));
  EXPECT_EQ(cache.find(0)->stride, 30);
  EXPECT_EQ(cache.find(0)->data[299], 7);
}

TEST_F(Cache, TunedReader_MakesTheSameSamplesWhileItGrows) {
  const auto wanted = epochs(*pipeline(R"("threads": 1)"), 40);
  auto tuned = pipeline(R"("auto": {"threads": true, "prefetch": true})");
  EXPECT_EQ(tuned->stats().threads, 1);
  EXPECT_EQ(tuned->stats().capacity, 2);
  // The consumer takes no time: it always waits, so the reader grows. Where other programs use the
  // cores, a second thread may gain nothing and be given back before it is seen.
  std::vector<testing::Copy> got;
  int64_t threads = 0, batches = 0;
  const auto start = std::chrono::steady_clock::now();
  int epoch = 0;
  for (; std::chrono::steady_clock::now() - start < std::chrono::seconds(20) &&
         (threads < 2 || epoch < 40);
       ++epoch) {
    tuned->start_epoch(epoch % 40);
    for (auto& batch : rest_of(*tuned)) {
      if (epoch < 40) got.push_back(std::move(batch));
    }
    threads = std::max(threads, tuned->stats().threads);
    batches = std::max(batches, tuned->stats().capacity);
  }
  EXPECT_TRUE(threads >= 2 || batches > 2) << threads << " threads, " << batches << " batches";
  EXPECT_EQ(got, wanted);
}

TEST(ReaderKeys, ShortForms_SetTheKeysBehindThem) {
  ConfigTree tree = ConfigTree::from_json(
      R"({"data": {"threads": "auto", "prefetch": "auto", "reader": "sync"}})", "job.json");
  expand_reader_keys(&tree);
  EXPECT_EQ(tree.peek("data.auto.threads"), "true");
  EXPECT_EQ(tree.peek("data.auto.prefetch"), "true");
  EXPECT_EQ(tree.peek("data.async"), "false");
  EXPECT_FALSE(tree.peek("data.threads"));
  EXPECT_FALSE(tree.peek("data.reader"));
  EXPECT_EQ(tree.origin("data.async"), "job.json");
  ConfigTree wrong = ConfigTree::from_json(R"({"data": {"reader": "fast"}})", "job.json");
  EXPECT_THAT(testing::message_of([&] { expand_reader_keys(&wrong); }),
              ::testing::HasSubstr("known: sync, async"));
}

}  // namespace
}  // namespace fleet::data
