// Packs of images (fleetrun pack) and the source that reads them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/hash.h"
#include "data/pack_file.h"
#include "data/pack_images.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using testing::rest_of;
using testing::settings_of;

// 40 JPEGs in two class folders for training, 7 for test.
class Pack : public ::testing::Test {
 protected:
  Pack() {
    for (int i = 0; i < 47; ++i) {
      const std::string split = i < 40 ? "train" : "test";
      const std::string path =
          root_ / (split + "/" + (i % 2 ? "dog" : "cat") + "/" + std::to_string(100 + i) + ".jpg");
      fs::create_directories(fs::path(path).parent_path());
      testing::write(path, testing::jpeg_picture(60 + i % 7, 50 - i % 5, i));
    }
  }

  static std::string job(const std::string& root, const std::string& more) {
    return R"({"root": ")" + root +
           R"(", "image": {"channels": 3, "height": 24, "width": 20},
      "augment": {"random_resized_crop": true, "flip": true, "mixup_alpha": 0.4}, "eval": {"resize": 28},
      "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], )" +
           more + "}";
  }
  Settings folders(const std::string& more = R"("batch_size": 8)") const {
    return settings_of("image_folder", job(root_.path(), more));
  }
  Settings packed(const std::string& more = R"("batch_size": 8)") const {
    return settings_of("packed", job(out(), more));
  }
  std::string out() const { return out_ / "pack"; }
  PackResult pack(const PackOptions& options = {}) const { return pack(folders(), options); }
  PackResult pack(const Settings& data, const PackOptions& options) const {
    return pack_images(data, out(), options, [](const PackProgress&) {});
  }

  testing::TempFolder root_, out_;
};

std::vector<testing::Copy> epoch_of(const Settings& settings, bool train,
                                    const PipelineContext& context, int64_t first = 0) {
  auto pipeline = make_pipeline(settings, train, context);
  if (!pipeline) return {};
  pipeline->start_epoch(2, first);
  return rest_of(*pipeline);
}

TEST_F(Pack, ImageFiles_TrainAndEvaluateBitByBitAsTheFolders) {
  const PackResult result = pack();
  EXPECT_EQ(result.samples, 47);
  EXPECT_EQ(result.damaged, 0);
  EXPECT_EQ(result.files, 4);  // of 16 samples each
  for (const bool train : {true, false}) {
    const auto wanted = epoch_of(folders(), train, {.seed = 5});
    EXPECT_EQ(wanted.size(), train ? 5u : 1u);
    EXPECT_EQ(epoch_of(packed(), train, {.seed = 5}), wanted);
  }
  const auto source = open_split(packed(), true, false, {});
  EXPECT_THAT(source->class_names(), ::testing::ElementsAre("cat", "dog"));
  EXPECT_THAT(source->name(39), ::testing::EndsWith("train/dog/139.jpg"));
}

// Otherwise a job would turn only the files that were copied.
TEST_F(Pack, ResizedImages_NeedTheExifKeyOfTheirPack) {
  const std::string apply = R"("batch_size": 8, "exif": "apply")";
  pack(folders(apply), {.size = 40});
  EXPECT_NO_THROW(open_split(packed(apply), true, false, {}));
  EXPECT_THAT(thrown_by([&] { open_split(packed(), true, false, {}); }), IsUsageError("data.exif"));
  fs::remove_all(out());
  pack(folders(), {.size = 40});
  EXPECT_THAT(thrown_by([&] { open_split(packed(apply), true, false, {}); }),
              IsUsageError("data.exif"));
  fs::remove_all(out());
  pack(folders(apply), {});
  EXPECT_NO_THROW(open_split(packed(), true, false, {}));
}

TEST_F(Pack, RawAndResized_KeepOrderLabelsAndNearlyThePixels) {
  const auto wanted = epoch_of(folders(), false, {});
  for (const bool raw : {true, false}) {
    pack({.raw = raw, .size = 40, .quality = 98});
    const auto got = epoch_of(packed(), false, {});
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].labels, wanted[0].labels);
    EXPECT_EQ(got[0].samples, wanted[0].samples);
    double difference = 0;
    for (size_t i = 0; i < got[0].images.size(); ++i) {
      difference += std::abs(got[0].images[i] - wanted[0].images[i]);
    }
    EXPECT_LT(difference / static_cast<double>(got[0].images.size()), 0.1) << raw;
    const PackFile file(pack_path(out(), "test", 0));
    EXPECT_EQ(file.entry(0).kind, raw ? PackedKind::kPixels : PackedKind::kFile);
    if (raw) {
      EXPECT_EQ(std::min(file.entry(0).height, file.entry(0).width), 40u);
    }
    fs::remove_all(out());
  }
}

TEST_F(Pack, SmallImages_AreNotEnlarged) {
  pack({.raw = true, .size = 500});
  const PackFile file(pack_path(out(), "train", 0));
  EXPECT_EQ(file.entry(0).height, 60u);
  EXPECT_EQ(file.entry(0).width, 50u);
}

// The hash of all global batches of an epoch: samples, labels, keys and pixels in their order.
uint64_t hash_of(const std::vector<std::vector<testing::Copy>>& ranks) {
  uint64_t hash = 0;
  for (size_t b = 0; b < ranks[0].size(); ++b) {
    for (const auto& rank : ranks) {
      const auto add = [&](const auto& values) {
        hash = hash_bytes(values.data(), values.size() * sizeof(values[0]), hash);
      };
      // By sample: the hash must not depend on how a batch is divided.
      const size_t size = rank[b].samples.size(), one = rank[b].images.size() / size;
      for (size_t i = 0; i < size; ++i) {
        add(std::vector{rank[b].samples[i], rank[b].labels[i], rank[b].other_labels[i]});
        add(std::vector{rank[b].keys[i]});
        add(std::vector<float>(rank[b].images.begin() + static_cast<long>(i * one),
                               rank[b].images.begin() + static_cast<long>((i + 1) * one)));
      }
    }
  }
  return hash;
}

TEST_F(Pack, AnyNumberOfRanksAndAfterAKill_SameHashOfSamples) {
  pack({.raw = true, .size = 32});
  const auto hash = [&](int ranks, int64_t first) {
    std::vector<std::vector<testing::Copy>> all;
    for (int rank = 0; rank < ranks; ++rank) {
      const Settings settings = packed(R"("threads": )" + std::to_string(1 + rank % 3) +
                                       R"(, "batch_size": )" + std::to_string(8 / ranks));
      const PipelineContext context{.rank = rank, .ranks = ranks, .seed = 5};
      if (first == 0) {
        all.push_back(epoch_of(settings, true, context));
        continue;
      }
      // The first run is destroyed while it works ahead; another one goes on.
      auto killed = make_pipeline(settings, true, context);
      killed->start_epoch(2);
      std::vector<testing::Copy> batches;
      for (int64_t b = 0; b < first; ++b) batches.push_back(testing::copy_of(*killed->next()));
      killed.reset();
      for (auto& batch : epoch_of(settings, true, context, first)) batches.push_back(batch);
      all.push_back(std::move(batches));
    }
    return hash_of(all);
  };
  const uint64_t alone = hash(1, 0);
  for (const int ranks : {1, 2, 4}) {
    for (const int64_t first : {0, 1, 3}) {
      EXPECT_EQ(hash(ranks, first), alone) << ranks << " ranks, killed after " << first;
    }
  }
  PipelineContext other{.seed = 6};
  EXPECT_NE(hash_of({epoch_of(packed(), true, other)}), alone);
}

TEST_F(Pack, Interrupted_GoesOnAndEqualsAWholeRun) {
  pack();
  const auto content = [&](int64_t file) {
    std::ifstream in(pack_path(out(), "train", file), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string first = content(0), second = content(1);
  // As a run leaves it that was killed within the second file.
  fs::remove(pack_path(out(), "train", 1));
  testing::write(pack_path(out(), "train", 1) + ".partial", "FLTPACK1 half");
  const PackResult again = pack();
  EXPECT_EQ(again.found_files, 3);
  EXPECT_EQ(again.files, 4);
  EXPECT_EQ(content(0), first);
  EXPECT_EQ(content(1), second);
  EXPECT_FALSE(fs::exists(pack_path(out(), "train", 1) + ".partial"));
}

// Changes one byte of a file.
void damage(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  if (at < 0) at += static_cast<int64_t>(fs::file_size(path));
  file.seekg(at);
  const char byte = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

TEST_F(Pack, DamagedSample_IsNamedAndReplacedAndMadeAnew) {
  pack();
  const std::string path = pack_path(out(), "train", 1);
  damage(path, 20);  // within the first sample of the file
  const auto source = open_split(packed(), true, false, {});
  std::vector<uint8_t> scratch;
  EXPECT_EQ(source->read(15, scratch).bytes.size(), fs::file_size(root_ / "train/cat/130.jpg"));
  EXPECT_THAT(message_of([&] { source->read(16, scratch); }),
              AllOf(HasSubstr(path), HasSubstr("sample 0 has a wrong checksum")));
  EXPECT_EQ(epoch_of(packed(R"("on_damaged": "skip", "batch_size": 8)"), true, {}).size(), 5u);
  EXPECT_THAT(
      thrown_by([&] { epoch_of(packed(R"("on_damaged": "fail", "batch_size": 8)"), true, {}); }),
      IsUsageError(::testing::EndsWith("train/cat/132.jpg")));
  EXPECT_EQ(pack().found_files, 3);
  EXPECT_EQ(epoch_of(packed(), true, {.seed = 5}), epoch_of(folders(), true, {.seed = 5}));
}

void expect_one_line(const std::string& message, const std::string& path) {
  EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("run fleetrun pack again")));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST_F(Pack, DamagedIndexTruncatedAndMissingFile_AreNamedInOneLine) {
  const std::string path = pack_path(out(), "train", 2);
  const auto message = [&] { return message_of([&] { open_split(packed(), true, false, {}); }); };
  for (const int64_t at : {-1, -20, -40, -400}) {
    pack();
    damage(path, at);
    expect_one_line(message(), path);
  }
  pack();
  fs::resize_file(path, fs::file_size(path) / 2);
  expect_one_line(message(), path);
  pack();
  fs::remove(path);
  expect_one_line(message(), path);
  pack();
  EXPECT_TRUE(open_split(packed(), true, false, {}));
}

TEST_F(Pack, DamagedImage_KeepsItsPlace) {
  testing::write(root_ / "train/cat/104.jpg", "no image");
  const PackResult result = pack();
  EXPECT_EQ(result.damaged, 1);
  // As from the folders: the same image replaces it.
  EXPECT_EQ(epoch_of(packed(), true, {.seed = 3}), epoch_of(folders(), true, {.seed = 3}));
  const auto source = open_split(packed(), true, false, {});
  std::vector<uint8_t> scratch;
  EXPECT_THAT(message_of([&] { source->read(2, scratch); }), HasSubstr("when it was packed"));
  EXPECT_THAT(thrown_by([&] { pack(folders(R"("on_damaged": "fail", "batch_size": 8)"), {}); }),
              IsUsageError(::testing::EndsWith("train/cat/104.jpg")));
  testing::write(root_ / "train/cat/104.jpg", testing::jpeg_picture(40, 40, 1));
  EXPECT_EQ(pack().damaged, 0);  // corrected
  testing::write(root_ / "train/cat/104.jpg", "no image");
  fs::remove_all(out());
  EXPECT_THAT(thrown_by([&] { pack(folders(R"("on_damaged": "fail", "batch_size": 8)"), {}); }),
              IsUsageError(::testing::EndsWith("train/cat/104.jpg")));
}

TEST_F(Pack, OtherDataOrOptionsOrFolder_AreRefused) {
  pack({.size = 40});
  EXPECT_THAT(thrown_by([&] { pack({.size = 41}); }), IsUsageError(out()));
  EXPECT_THAT(thrown_by([&] { pack({.raw = true, .size = 40}); }), IsUsageError(out()));
  testing::write(root_ / "train/cat/999.jpg", testing::jpeg_picture(40, 40, 1));
  EXPECT_THAT(thrown_by([&] { pack({.size = 40}); }), IsUsageError(out()));
  fs::remove_all(out());
  fs::create_directories(out());
  testing::write(out() + "/thesis.txt", "precious");
  EXPECT_THAT(thrown_by([&] { pack(); }), IsUsageError(out()));
  EXPECT_THAT(thrown_by([&] { open_split(packed(), true, false, {}); }), IsUsageError(out()));
}

TEST_F(Pack, WithoutTestImages_HasNoTestSplit) {
  pack(folders(R"("batch_size": 8, "test": {"folder": ""})"), {});
  EXPECT_FALSE(open_split(packed(), false, false, {}));
  EXPECT_THAT(
      thrown_by([&] { open_split(packed(R"("test": {"split": "test"})"), false, false, {}); }),
      IsUsageError("data.test.split"));
  // A validation split takes the same samples as from the folders.
  const std::string part = R"("batch_size": 8, "validation_split": 0.25)";
  EXPECT_EQ(epoch_of(packed(part), false, {}), epoch_of(folders(part), false, {}));
}

// Images of IDX files are pixels already.
TEST(PackOfPixels, KeepThemAsTheyAre) {
  testing::TempFolder root, out;
  const auto pixels = testing::picture(20 * 8, 6, 1);
  testing::write(root / "images", testing::idx_of({20, 8, 6}, pixels));
  testing::write(root / "labels", testing::idx_of({20}, std::vector<uint8_t>(20, 3)));
  const std::string json = R"({"root": ")" + root.path() +
                           R"(", "train": {"images": "images", "labels": "labels"},
          "test": {"images": "", "labels": ""}})";
  for (const bool raw : {true, false}) {
    const std::string folder = out / (raw ? "raw" : "jpeg");
    pack_images(settings_of("idx", json), folder, {.raw = raw}, [](const PackProgress&) {});
    const auto source =
        open_split(settings_of("packed", R"({"root": ")" + folder + R"("})"), true, false, {});
    std::vector<uint8_t> scratch;
    for (int i = 0; i < 20; ++i) {
      const Sample sample = source->read(i, scratch);
      EXPECT_FALSE(sample.encoded);
      EXPECT_EQ(sample.channels, 1);
      EXPECT_TRUE(std::equal(sample.bytes.begin(), sample.bytes.end(), pixels.begin() + i * 48));
      EXPECT_EQ(source->label(i), 3);
    }
  }
}

TEST_F(Pack, FileSystemThatIsGone_EndsIt) {
  for (int i = 0; i < 120; ++i) {
    testing::write(root_ / ("train/cat/5" + std::to_string(1000 + i) + ".jpg"), "no image");
  }
  // With one thread: others would find good images between them.
  const Error error = thrown_by([&] { pack({.threads = 1}); });
  EXPECT_THAT(error, IsError(ErrorCode::kIo, HasSubstr("train/cat/5")));
  EXPECT_THAT(error.failure(), HasSubstr("100 images in a row"));
}

// Their product is 2^64: as many bytes as there are.
TEST(PackOfPixels, ImpossibleSize_IsDamage) {
  testing::TempFolder out;
  PackWriter writer(out / "a.pack");
  writer.add({.bytes = "",
              .name = "a",
              .kind = PackedKind::kPixels,
              .height = 1 << 30,
              .width = 1 << 30,
              .channels = 16});
  writer.finish();
  EXPECT_THAT(message_of([&] { PackFile(out / "a.pack"); }), HasSubstr("inconsistent"));
}

}  // namespace
}  // namespace fleet::data
