#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include "data/image_files.h"
#include "tests/data/helpers.h"

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

TEST(Fingerprint, OfTrillionsOfSamples_IsTakenInNoTime) {
  const Settings split = ConfigTree::from_json(R"({"samples": 1000000000000})", "test")
                             .validate(sources().get("synthetic").schema(true));
  SourceContext context;
  context.channels = 1;
  context.height = context.width = 4;
  context.classes = 10;
  const Fingerprint print = fingerprint(*sources().get("synthetic").open(split, context));
  EXPECT_EQ(print.samples, 1000000000000);
  EXPECT_EQ(print.classes, 10);
  EXPECT_EQ(print.files, 0u);
}

}  // namespace
}  // namespace fleet::data
