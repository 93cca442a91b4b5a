// Batches whose images are mixed, with every other augmentation switched on.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/pipeline.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

using testing::Copy;
using testing::rest_of;

class Mixing : public ::testing::Test {
 protected:
  Mixing() {
    std::string list;
    for (int i = 0; i < 26; ++i) {
      const std::string name = "image" + std::to_string(i) + ".jpg";
      testing::write(folder_ / name, testing::jpeg_picture(40 + i % 7, 50 - i % 5, i));
      list += name + " " + std::to_string(i % 4) + "\n";
    }
    testing::write(folder_ / "list.txt", list);
  }

  std::unique_ptr<InputPipeline> pipeline(const std::string& mixing, const std::string& more,
                                          const PipelineContext& context) const {
    const std::string json = R"({"root": ")" + folder_.path() +
                             R"(", "image": {"channels": 3, "height": 24, "width": 20},
        "train": {"list": "list.txt"}, "repeats": 2, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4],
        "augment": {"random_resized_crop": true, "flip": true, "color_jitter": {"brightness": 0.4},
                    "rand_augment": {"operations": 2}, "random_erasing": {"probability": 0.5})" +
                             mixing + "}, " + more + "}";
    return make_pipeline(testing::settings_of("image_list", json), true, context);
  }

  testing::TempFolder folder_;
};

const std::string kBoth = R"(, "mixup_alpha": 0.8, "cutmix_alpha": 1)";

TEST_F(Mixing, AnyNumberOfRanksAndThreads_SameGlobalBatches) {
  const auto global = [&](int ranks, const std::string& how) {
    std::vector<Copy> batches;
    for (int rank = 0; rank < ranks; ++rank) {
      auto part = pipeline(kBoth, how + R"(, "batch_size": )" + std::to_string(12 / ranks),
                           {.rank = rank, .ranks = ranks, .seed = 4});
      part->start_epoch(1);
      const auto mine = rest_of(*part);
      batches.resize(mine.size());
      for (size_t b = 0; b < mine.size(); ++b) {
        const auto append = [](auto& to, const auto& from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        append(batches[b].images, mine[b].images);
        append(batches[b].labels, mine[b].labels);
        append(batches[b].other_labels, mine[b].other_labels);
        append(batches[b].own_shares, mine[b].own_shares);
        append(batches[b].samples, mine[b].samples);
        append(batches[b].keys, mine[b].keys);
      }
    }
    return batches;
  };
  const auto alone = global(1, R"("async": false)");
  ASSERT_EQ(alone.size(), 3u);
  EXPECT_EQ(alone[0].images.size(), 12u * 3 * 24 * 20);
  EXPECT_EQ(alone, global(1, R"("threads": 3)"));
  EXPECT_EQ(alone, global(2, R"("threads": 1)"));
  EXPECT_EQ(alone, global(2, R"("async": false)"));
  EXPECT_EQ(alone, global(4, R"("threads": 2)"));
  EXPECT_EQ(alone, global(12, R"("threads": 2)"));
}

TEST_F(Mixing, Mixup_IsTheBlendOfNeighboursInTheGlobalBatch) {
  const auto batches_of = [&](const std::string& mixing) {
    auto all = pipeline(mixing, R"("batch_size": 13)", {.seed = 7});
    all->start_epoch(0);
    return rest_of(*all);
  };
  const auto plain = batches_of(""), mixed = batches_of(R"(, "mixup_alpha": 0.8)");
  ASSERT_EQ(plain.size(), 2u);
  ASSERT_EQ(mixed.size(), 2u);
  std::set<float> shares;
  for (size_t b = 0; b < 2; ++b) {
    const size_t one = plain[b].images.size() / 13;
    EXPECT_EQ(mixed[b].labels, plain[b].labels);
    EXPECT_TRUE(plain[b].other_labels.empty());
    for (size_t i = 0; i < 13; ++i) {
      const size_t before = (i + 12) % 13;
      const float own = mixed[b].own_shares[i];
      EXPECT_EQ(mixed[b].other_labels[i], plain[b].labels[before]);
      for (size_t e = 0; e < one; ++e) {
        const float wanted =
            own * plain[b].images[i * one + e] + (1 - own) * plain[b].images[before * one + e];
        ASSERT_NEAR(mixed[b].images[i * one + e], wanted, 1e-5) << "image " << i;
      }
      shares.insert(own);
    }
  }
  EXPECT_EQ(shares.size(), 2u) << "each batch has one share";
}

TEST_F(Mixing, Bytes_AreTheRoundedFloats) {
  const auto make = [&](bool bytes) {
    return pipeline(kBoth, R"("batch_size": 8)", {.seed = 4, .bytes = bytes});
  };
  auto floats = make(false), bytes = make(true);
  floats->start_epoch(0);
  bytes->start_epoch(0);
  const double mean[] = {0.5, 0.4, 0.3}, deviation[] = {0.2, 0.3, 0.4};
  while (const Batch* want = floats->next()) {
    const Batch* got = bytes->next();
    ASSERT_TRUE(got);
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(got->flips[i], 0) << "mirrored before it was mixed";
      EXPECT_EQ(got->own_shares[i], want->own_shares[i]);
      for (int64_t pixel = 0; pixel < 24 * 20; ++pixel) {
        for (int c = 0; c < 3; ++c) {
          const double value = want->images[(i * 3 + c) * 480 + pixel] * deviation[c] + mean[c];
          // Rounded before and after mixing.
          ASSERT_NEAR(got->pixels[(i * 480 + pixel) * 4 + c], value * 255, 1.01);
        }
      }
    }
  }
}

// Nothing else is in its global batch.
TEST_F(Mixing, SingleImage_IsSaidToBeMixedWithItself) {
  const auto lines = [&](const std::string& mixing, int batch, int ranks) {
    const std::string size = R"("batch_size": )" + std::to_string(batch);
    const std::string log = captured_log([&] { pipeline(mixing, size, {.ranks = ranks}); });
    return std::count(log.begin(), log.end(), '\n');
  };
  for (const char* mixing : {R"(, "mixup_alpha": 0.8)", R"(, "cutmix_alpha": 1)", kBoth.c_str()}) {
    const auto of_repeats = lines(mixing, 2, 1);
    EXPECT_EQ(lines(mixing, 1, 1), of_repeats + 1) << mixing;
    EXPECT_EQ(lines(mixing, 1, 2), of_repeats) << mixing;
  }
  EXPECT_EQ(lines("", 1, 1), lines("", 2, 1));
}

TEST_F(Mixing, Placeholder_HasALabelThatTheLossIgnores) {
  auto all = pipeline(kBoth, R"("batch_size": 4)", {.ignored_label = -7});
  all->start_epoch(0);
  const Batch* batch = all->placeholder_batch();
  EXPECT_THAT(batch->labels, ::testing::Each(-7));
  EXPECT_THAT(batch->other_labels, ::testing::Each(-7));
  EXPECT_THAT(batch->own_shares, ::testing::Each(1.0f));
}

}  // namespace
}  // namespace fleet::data
