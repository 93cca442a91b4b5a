#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include "data/image_files.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

using testing::TempFolder;

Fingerprint of(const std::string& root, const std::vector<std::string>& files,
               const std::vector<int64_t>& labels) {
  std::vector<ImageFile> all;
  for (size_t i = 0; i < files.size(); ++i) all.push_back({root + "/" + files[i], labels[i]});
  return fingerprint(ImageFiles(all));
}

TEST(Fingerprint, SameDataInAnotherPlace_IsTheSame) {
  TempFolder here, there;
  for (const std::string& root : {here.path(), there.path()}) {
    testing::write(root + "/cat/1.jpg", "a");
    testing::write(root + "/dog/1.jpg", "b");
  }
  const Fingerprint print = of(here.path(), {"cat/1.jpg", "dog/1.jpg"}, {0, 4});
  EXPECT_EQ(print.samples, 2);
  EXPECT_EQ(print.classes, 5);
  EXPECT_EQ(print, of(there.path(), {"cat/1.jpg", "dog/1.jpg"}, {0, 4}));
}

// Of 300 samples; a position that is the quotient of two rounded numbers would miss some.
TEST(Fingerprint, EachLabel_Counts) {
  const std::vector<std::string> files(300, "a.jpg");
  std::vector<int64_t> labels(300);
  TempFolder folder;
  const Fingerprint usual = of(folder.path(), files, labels);
  for (int64_t& label : labels) {
    label = 7;
    const Fingerprint other = of(folder.path(), files, labels);
    EXPECT_EQ(other.classes, 8);
    EXPECT_NE(other.labels, usual.labels);
    label = 0;
  }
}

TEST(Fingerprint, EachDifference_IsInItsPart) {
  TempFolder folder;
  for (const char* file : {"a/1.jpg", "a/2.jpg", "b/1.jpg"}) {
    testing::write(folder / file, "same");
  }
  const auto print = [&](const std::vector<std::string>& files, std::vector<int64_t> labels) {
    return of(folder.path(), files, labels);
  };
  const Fingerprint usual = print({"a/1.jpg", "b/1.jpg"}, {0, 1});
  const Fingerprint labels = print({"a/1.jpg", "b/1.jpg"}, {1, 1});
  EXPECT_NE(labels.labels, usual.labels);
  EXPECT_EQ(labels.files, usual.files);
  const Fingerprint files = print({"a/2.jpg", "b/1.jpg"}, {0, 1});
  EXPECT_NE(files.files, usual.files);
  EXPECT_EQ(files.images, usual.images);
  testing::write(folder / "b/1.jpg", "other");
  EXPECT_NE(print({"a/1.jpg", "b/1.jpg"}, {0, 1}).images, usual.images);
  EXPECT_NE(print({"a/1.jpg", "b/missing.jpg"}, {0, 1}).images, usual.images);
}

class Endless : public Source {
 public:
  int64_t size() const override { return 1'000'000'000'000; }
  int64_t label(int64_t index) const override { return index % 10; }
  Sample read(int64_t, std::vector<uint8_t>&) const override {
    return {.bytes = pixels_, .encoded = false, .height = 1, .width = 4, .channels = 1};
  }
  std::string name(int64_t) const override { return "endless"; }

 private:
  const std::vector<uint8_t> pixels_ = {1, 2, 3, 4};
};

TEST(Fingerprint, OfTrillionsOfSamples_LooksAtSomeMillions) {
  const Fingerprint print = fingerprint(Endless());
  EXPECT_EQ(print.samples, 1'000'000'000'000);
  EXPECT_EQ(print.classes, 10);
  EXPECT_EQ(print.files, 0u);
}

}  // namespace
}  // namespace fleet::data
