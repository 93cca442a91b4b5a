#include "data/pipeline.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"
#include "tests/refused_threads.h"

namespace fleet::data {
namespace {

using ::testing::AllOf;
using testing::Copy;
using testing::copy_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::jpeg_picture;
using testing::rest_of;
using testing::settings_of;
using testing::TempFolder;

// A folder with a list of `count` small JPEGs, of differing sizes.
void write_images(const TempFolder& folder, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string name = "image" + std::to_string(i) + ".jpg";
    testing::write(folder / name, jpeg_picture(40 + i % 7, 50 - i % 5, i));
    list += name + " " + std::to_string(i % 4) + "\n";
  }
  testing::write(folder / "list.txt", list);
}

std::string image_json(const TempFolder& folder, const std::string& more) {
  return R"({"root": ")" + folder.path() +
         R"(", "image": {"channels": 3, "height": 24, "width": 20},
    "train": {"list": "list.txt"}, "test": {"list": "list.txt"}, "eval": {"resize": 28},
    "augment": {"random_resized_crop": true, "flip": true, "color_jitter": {"brightness": 0.4, "hue": 0.1}},
    "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], )" +
         more + "}";
}

std::string synthetic_json(const std::string& more) {
  return R"({"image": {"channels": 1, "height": 4, "width": 5}, "train": {"samples": 103},
             "test": {"samples": 37}, )" +
         more + "}";
}

std::unique_ptr<InputPipeline> images(const TempFolder& folder, const std::string& more,
                                      const PipelineContext& context, bool train = true) {
  return make_pipeline(settings_of("image_list", image_json(folder, more)), train, context);
}

std::unique_ptr<InputPipeline> synthetic(const std::string& more, const PipelineContext& context,
                                         bool train = true) {
  return make_pipeline(settings_of("synthetic", synthetic_json(more)), train, context);
}

TEST(InputPipeline, ThreadsAndAsync_ChangeNothing) {
  TempFolder folder;
  write_images(folder, 23);
  const auto epoch_of = [&](const std::string& more) {
    auto pipeline = images(folder, more + R"(, "batch_size": 5)", {.seed = 9});
    pipeline->start_epoch(3);
    return rest_of(*pipeline);
  };
  const auto synchronous = epoch_of(R"("async": false)");
  ASSERT_EQ(synchronous.size(), 5u);
  EXPECT_EQ(synchronous, epoch_of(R"("threads": 1)"));
  EXPECT_EQ(synchronous, epoch_of(R"("threads": 4, "prefetch": 1)"));
  EXPECT_EQ(synchronous, epoch_of(R"("threads": 3, "prefetch": 7)"));
}

// The threads that exist wait for work. The system refuses the next one: nobody may wait for them.
TEST(InputPipeline, ThreadRefused_IsAnErrorAtOnce) {
  if (!kThreadsCanBeRefused) GTEST_SKIP() << "a sanitizer's threads cannot be refused";
  const auto make = [] {
    try {
      (void)synthetic(R"("batch_size": 5, "threads": 16)", {.seed = 9});
      return 1;
    } catch (const Error& error) {
      return error.code() == ErrorCode::kIo ? 0 : 2;
    }
  };
  EXPECT_EQ(with_room_for_threads(3, make), 0);
}

// Global batches, augmented pixels included, are the same for every number of ranks.
TEST(InputPipeline, AnyNumberOfRanks_SameGlobalBatchesAndPixels) {
  TempFolder folder;
  write_images(folder, 23);
  const auto global = [&](int ranks) {
    std::vector<Copy> batches;
    for (int rank = 0; rank < ranks; ++rank) {
      auto pipeline = images(folder, R"("threads": 2, "batch_size": )" + std::to_string(12 / ranks),
                             {.rank = rank, .ranks = ranks, .seed = 4});
      pipeline->start_epoch(1);
      const auto mine = rest_of(*pipeline);
      batches.resize(mine.size());
      for (size_t b = 0; b < mine.size(); ++b) {
        const auto append = [](auto& to, const auto& from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        append(batches[b].images, mine[b].images);
        append(batches[b].labels, mine[b].labels);
        append(batches[b].samples, mine[b].samples);
        append(batches[b].weights, mine[b].weights);
        append(batches[b].keys, mine[b].keys);
        batches[b].real += mine[b].real;
      }
    }
    return batches;
  };
  const auto alone = global(1);
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_EQ(alone[1].real, 11);
  EXPECT_EQ(alone, global(2));
  EXPECT_EQ(alone, global(3));
  EXPECT_EQ(alone, global(4));
}

TEST(InputPipeline, ResumedAtAPosition_EqualsUninterrupted) {
  TempFolder folder;
  write_images(folder, 23);
  const auto make = [&] {
    return images(folder, R"("batch_size": 4, "threads": 2)", {.rank = 1, .ranks = 2, .seed = 4});
  };
  auto whole = make();
  whole->start_epoch(0);
  rest_of(*whole);
  whole->start_epoch(1);
  auto expected = rest_of(*whole);
  ASSERT_EQ(expected.size(), 3u);

  auto resumed = make();
  resumed->start_epoch(1, 1);
  expected.erase(expected.begin());
  EXPECT_EQ(rest_of(*resumed), expected);
  resumed->start_epoch(1, 3);
  EXPECT_EQ(resumed->next(), nullptr);
}

TEST(InputPipeline, StartEpochInTheMiddle_DropsWhatWasMade) {
  auto pipeline = synthetic(R"("batch_size": 7, "threads": 3, "prefetch": 4)", {.seed = 1});
  pipeline->start_epoch(2);
  const auto expected = rest_of(*pipeline);
  for (int i = 0; i < 20; ++i) {
    pipeline->start_epoch(i);
    for (int b = 0; b < i % 5; ++b) ASSERT_NE(pipeline->next(), nullptr);
  }
  pipeline->start_epoch(2);
  EXPECT_EQ(rest_of(*pipeline), expected);
}

TEST(InputPipeline, Evaluation_CountsEachSampleOnceOnAnyNumberOfRanks) {
  for (int ranks : {1, 2, 3}) {
    std::map<int64_t, int> counted;
    size_t batches = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      auto pipeline = synthetic(R"("batch_size": 4)", {.rank = rank, .ranks = ranks}, false);
      EXPECT_EQ(pipeline->batch_size(), 4);
      pipeline->start_epoch(0);
      const auto mine = rest_of(*pipeline);
      if (rank > 0) {
        EXPECT_EQ(mine.size(), batches);
      }
      batches = mine.size();
      for (const Copy& batch : mine) {
        for (int i = 0; i < 4; ++i) {
          if (batch.weights[i] == 1) ++counted[batch.samples[i]];
        }
      }
    }
    EXPECT_EQ(counted.size(), 37u);
    for (const auto& [sample, times] : counted) EXPECT_EQ(times, 1) << sample;
  }
}

TEST(InputPipeline, Tail_PaddedOrDropped) {
  auto padded = synthetic(R"("batch_size": 10)", {});
  EXPECT_EQ(padded->batches(), 11);
  padded->start_epoch(0);
  const auto batches = rest_of(*padded);
  EXPECT_EQ(batches.back().real, 3);
  EXPECT_THAT(batches.back().weights, ElementsAre(1, 1, 1, 0, 0, 0, 0, 0, 0, 0));
  auto dropped = synthetic(R"("batch_size": 10, "tail": "drop")", {});
  EXPECT_EQ(dropped->batches(), 10);
}

TEST(InputPipeline, Shuffle_DiffersByEpochAndCanBeOff) {
  auto shuffled = synthetic(R"("batch_size": 103)", {});
  shuffled->start_epoch(0);
  const auto first = copy_of(*shuffled->next());
  shuffled->start_epoch(1);
  EXPECT_NE(copy_of(*shuffled->next()).samples, first.samples);
  auto ordered = synthetic(R"("batch_size": 4, "shuffle": false)", {});
  ordered->start_epoch(5);
  EXPECT_THAT(copy_of(*ordered->next()).samples, ElementsAre(0, 1, 2, 3));
}

TEST(InputPipeline, Queue_FillsWhileNobodyTakesFromIt) {
  auto pipeline = synthetic(R"("batch_size": 4, "prefetch": 3)", {});
  pipeline->start_epoch(0);
  EXPECT_EQ(pipeline->stats().capacity, 3);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto fill_to = [&](int64_t batches) {
    while (pipeline->stats().queued < batches && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return pipeline->stats().queued;
  };
  pipeline->next();
  EXPECT_EQ(fill_to(3), 3);  // in addition to the current one
  for (int64_t left = pipeline->batches() - 1; left > 0; --left) pipeline->next();
  EXPECT_EQ(pipeline->stats().queued, 0);
  auto synchronous = synthetic(R"("batch_size": 4, "async": false)", {});
  synchronous->start_epoch(0);
  synchronous->next();
  EXPECT_EQ(synchronous->stats().capacity, 0);
  EXPECT_EQ(synchronous->stats().queued, 0);
}

TEST(InputPipeline, DamagedImageSkipped_ReplacedByTheNextAndCounted) {
  TempFolder folder;
  write_images(folder, 6);
  testing::write(folder / "image2.jpg", jpeg_picture(40, 50).substr(0, 300));
  testing::write(folder / "image3.jpg", "not an image");
  for (const char* more : {R"("async": false)", R"("threads": 3)"}) {
    auto pipeline =
        images(folder, std::string(more) + R"(, "batch_size": 6, "shuffle": false)", {});
    for (int epoch = 0; epoch < 2; ++epoch) {
      pipeline->start_epoch(epoch);
      const Copy batch = copy_of(*pipeline->next());
      EXPECT_THAT(batch.samples, ElementsAre(0, 1, 4, 4, 4, 5));
      EXPECT_THAT(batch.labels, ElementsAre(0, 1, 0, 0, 0, 1));
      EXPECT_EQ(batch.real, 6);
    }
    EXPECT_EQ(pipeline->stats().damaged, 2);
  }
  auto evaluation = images(folder, R"("batch_size": 6)", {}, false);
  evaluation->start_epoch(0);
  EXPECT_THAT(copy_of(*evaluation->next()).weights, ElementsAre(1, 1, 0, 0, 1, 1));
}

TEST(InputPipeline, DamagedImageFatal_ErrorReachesTheConsumer) {
  TempFolder folder;
  write_images(folder, 6);
  testing::write(folder / "image5.jpg", jpeg_picture(40, 50).substr(0, 300));
  for (const char* more : {R"("async": false)", R"("threads": 3)"}) {
    auto pipeline = images(
        folder, std::string(more) + R"(, "batch_size": 2, "shuffle": false, "on_damaged": "fail")",
        {});
    pipeline->start_epoch(0);
    EXPECT_NE(pipeline->next(), nullptr);
    EXPECT_NE(pipeline->next(), nullptr);
    EXPECT_THAT(thrown_by([&] { pipeline->next(); }), IsUsageError(folder / "image5.jpg"));
    pipeline->start_epoch(0);
    EXPECT_NE(pipeline->next(), nullptr) << "an error ends its epoch, not the pipeline";
  }
}

TEST(InputPipeline, AllImagesDamaged_EndsWithAnError) {
  TempFolder folder;
  write_images(folder, 2);
  testing::write(folder / "image0.jpg", "x");
  testing::write(folder / "image1.jpg", "y");
  auto pipeline = images(folder, R"("batch_size": 2)", {});
  pipeline->start_epoch(0);
  EXPECT_THAT(thrown_by([&] { pipeline->next(); }), IsUsageError(EndsWith(".jpg")));
}

TEST(InputPipeline, WrongImageSize_SaysBothSizesAndWhatToSet) {
  TempFolder folder;
  write_images(folder, 2);
  const Settings settings =
      settings_of("image_list",
                  R"({"root": ")" + folder.path() +
                      R"(", "train": {"list": "list.txt"}, "image": {"height": 32, "width": 32}})");
  auto pipeline = make_pipeline(settings, true, {});
  pipeline->start_epoch(0);
  const Error error = thrown_by([&] { pipeline->next(); });
  EXPECT_THAT(error, IsUsageError(EndsWith(".jpg")));
  EXPECT_THAT(error.failure(), HasSubstr("but data.image is 32x32"));
}

TEST(InputPipeline, MissingTestSplit_IsNull) {
  TempFolder folder;
  write_images(folder, 2);
  const auto settings = settings_of(
      "image_list", R"({"root": ")" + folder.path() + R"(", "train": {"list": "list.txt"}})");
  EXPECT_EQ(make_pipeline(settings, false, {}), nullptr);
  EXPECT_THAT(thrown_by([] { make_pipeline(settings_of("image_list", "{}"), true, {}); }),
              IsUsageError("data.train"));
}

TEST(InputPipeline, Stop_WakesTheConsumerAndEndsWorkers) {
  for (const char* more : {R"("async": false)", R"("threads": 3)"}) {
    auto pipeline = synthetic(std::string(more) + R"(, "batch_size": 2)", {});
    pipeline->start_epoch(0);
    std::thread stopper([&] { pipeline->stop(); });
    while (pipeline->next()) {
    }
    stopper.join();
    pipeline->stop();
    EXPECT_EQ(pipeline->next(), nullptr);
    pipeline->start_epoch(1);
    EXPECT_EQ(pipeline->next(), nullptr);
  }
}

TEST(InputPipeline, DestroyedWhileWorkersAreBusy_NothingIsWrittenLater) {
  std::vector<std::vector<float>> memory;
  const PipelineContext context{.image_memory = [&](size_t bytes) {
    memory.emplace_back(bytes / sizeof(float));
    return memory.back().data();
  }};
  for (int i = 0; i < 10; ++i) {
    auto pipeline = synthetic(R"("batch_size": 16, "threads": 4, "prefetch": 4)", context);
    pipeline->start_epoch(i);
    if (i % 2) {
      EXPECT_NE(pipeline->next(), nullptr);
    }
    pipeline.reset();
    for (std::vector<float>& batch : memory) std::fill(batch.begin(), batch.end(), -1e9f);
  }
  EXPECT_GE(memory.size(), 40u);
  EXPECT_THAT(memory, Each(Each(-1e9f)));
}

TEST(InputPipeline, CallersMemory_IsWhatBatchesLieIn) {
  std::vector<std::vector<float>> memory;
  const PipelineContext context{.image_memory = [&](size_t bytes) {
    memory.emplace_back(bytes / sizeof(float));
    return memory.back().data();
  }};
  auto pipeline = synthetic(R"("batch_size": 7, "prefetch": 3)", context);
  EXPECT_EQ(memory.size(), 4u);
  EXPECT_EQ(memory[0].size(), 7u * 4 * 5);
  pipeline->start_epoch(0);
  while (const Batch* batch = pipeline->next()) {
    bool found = false;
    for (const auto& buffer : memory) found |= batch->images.data() == buffer.data();
    ASSERT_TRUE(found);
  }
}

TEST(InputPipeline, BatchInHand_StaysUntouched) {
  auto pipeline = synthetic(R"("batch_size": 2, "threads": 3, "prefetch": 1)", {});
  pipeline->start_epoch(0);
  for (int i = 0; i < 20; ++i) {
    const Batch* batch = pipeline->next();
    ASSERT_NE(batch, nullptr);
    const Copy before = copy_of(*batch);
    std::this_thread::yield();
    EXPECT_EQ(copy_of(*batch), before);
  }
}

TEST(InputPipeline, SpeedTestMode_GivesTheFirstBatchAgain) {
  ASSERT_EQ(::setenv("FLAGS_reader_queue_speed_test_mode", "True", 1), 0);
  for (const char* more : {R"("async": false)", R"("threads": 2)"}) {
    auto pipeline = synthetic(std::string(more) + R"(, "batch_size": 10)", {});
    pipeline->start_epoch(0);
    const auto batches = rest_of(*pipeline);
    ASSERT_EQ(batches.size(), 11u);
    for (size_t b = 0; b < batches.size(); ++b) {
      EXPECT_EQ(batches[b].samples, batches[0].samples);
      EXPECT_EQ(batches[b].index, static_cast<int64_t>(b));
    }
  }
  ASSERT_EQ(::setenv("FLAGS_reader_queue_speed_test_mode", "maybe", 1), 0);
  EXPECT_THAT(thrown_by([] { synthetic(R"("batch_size": 1)", {}); }),
              IsUsageError("environment FLAGS_reader_queue_speed_test_mode"));
  ::unsetenv("FLAGS_reader_queue_speed_test_mode");
}

TEST(InputPipeline, Keys_AreThoseOfTheSample) {
  auto pipeline = synthetic(R"("batch_size": 10)", {.seed = 77});
  pipeline->start_epoch(6);
  const Copy batch = copy_of(*pipeline->next());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(batch.keys[i], sample_key(77, 6, batch.samples[i]));
  EXPECT_EQ(batch.epoch, 6);
}

TEST(DataSchema, UnknownSourceAndKey_NameTheNearest) {
  EXPECT_THAT(thrown_by([] { data_schema("image_lists"); }),
              AllOf(IsUsageError(), Advises("did you mean 'image_list'?")));
  EXPECT_THAT(thrown_by([] { settings_of("idx", R"({"augment": {"flop": true}})"); }),
              IsUsageError());
  EXPECT_THAT(thrown_by([] { settings_of("idx", R"({"train": {"list": "x"}})"); }), IsUsageError());
}

}  // namespace
}  // namespace fleet::data
