// The source image_table: labels of images in tables.
#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::settings_of;

class ImageTable : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) {
      testing::write(folder_ / (std::string("photos/") + name + ".jpg"),
                     testing::jpeg_picture(8, 8));
    }
  }
  // The table is photos/train.csv unless the keys name another.
  std::unique_ptr<Source> open(const std::string& table, const std::string& keys,
                               int64_t classes = 0, bool train = true) {
    testing::write(folder_ / (train ? "photos/train.csv" : "photos/test.csv"), table);
    const std::string files = R"("train": {"file": ")" + (folder_ / "photos/train.csv") +
                              R"("}, "test": {"file": ")" + (folder_ / "photos/test.csv") + "\"}";
    const Settings data = settings_of("image_table", "{" + files + keys + "}");
    return open_split(data, train, false, {.classes = classes});
  }
  static std::vector<int64_t> labels_of(const Source& source) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < source.size(); ++i) labels.push_back(source.label(i));
    return labels;
  }
  static std::vector<float> targets_of(const Source& source, int64_t index, int64_t classes) {
    std::vector<float> targets(classes, -1);
    void* const to[] = {nullptr, targets.data()};
    source.fill(index, 0, to);
    return targets;
  }

  testing::TempFolder folder_;
};

TEST_F(ImageTable, Names_AreNumberedInTheirOrderOfTraining) {
  const auto source = open("file,label\na.jpg,rose\n\"b.jpg\",\"daisy, wild\"\nc.jpg,rose\n", "");
  EXPECT_THAT(source->class_names(), ElementsAre("daisy, wild", "rose"));
  EXPECT_THAT(labels_of(*source), ElementsAre(1, 0, 1));
  EXPECT_EQ(source->name(1), folder_ / "photos/b.jpg");
  // A test table without the first class has the same numbers.
  const auto test = open("file,label\nc.jpg,rose\n", "", 2, /*train=*/false);
  EXPECT_THAT(labels_of(*test), ElementsAre(1));
  EXPECT_THAT(thrown_by([&] { open("file,label\nc.jpg,tulip\n", "", 2, false); }),
              IsUsageError(folder_ / "photos/test.csv:2"));
}

TEST_F(ImageTable, GivenNamesAndNumbers_SetTheOrder) {
  const std::string table = "id,species\na,rose\nb,daisy\n";
  const std::string keys =
      R"(, "image_column": "id", "label_column": ["species"], "image_ending": ".jpg")";
  EXPECT_THAT(labels_of(*open(table, keys + R"(, "class_names": ["rose", "daisy"])")),
              ElementsAre(0, 1));
  const auto numbers = open("a.jpg,10\nb.jpg,2\n",
                            R"(, "header": false, "image_column": "1", "label_column": ["2"])", 11);
  EXPECT_THAT(numbers->class_names(), IsEmpty());
  EXPECT_THAT(labels_of(*numbers), ElementsAre(10, 2));
  const std::string given = R"(, "class_names": ["rose", "daisy"])";
  const auto named = open("file,label\na.jpg,1\nb.jpg,0\n", given);
  EXPECT_THAT(named->class_names(), ElementsAre("rose", "daisy"));
  EXPECT_THAT(labels_of(*named), ElementsAre(1, 0));
  for (const char* table :
       {"file,label\na.jpg,1\nb.jpg,2\n", "file,label\na.jpg,rose\nb.jpg,1\n"}) {
    EXPECT_THAT(thrown_by([&] { open(table, given); }),
                IsUsageError(folder_ / "photos/train.csv:3"));
  }
}

TEST_F(ImageTable, Numbers_MayHaveGivenNames) {
  const std::string names = R"(, "class_names": ["daisy", "rose"])";
  const auto source = open("file,label\na.jpg,1\nb.jpg,0\n", names, 2);
  EXPECT_THAT(source->class_names(), ElementsAre("daisy", "rose"));
  EXPECT_THAT(labels_of(*source), ElementsAre(1, 0));
  const std::string second = folder_ / "photos/train.csv:3";
  EXPECT_THAT(thrown_by([&] { open("file,label\na.jpg,1\nb.jpg,2\n", names, 2); }),
              IsUsageError(second));
  EXPECT_THAT(thrown_by([&] {
                open("file,label\na.jpg,7\nb.jpg,0\n", R"(, "class_names": ["7", "rose"])", 2);
              }),
              IsUsageError(second));
}

TEST_F(ImageTable, SeveralColumnsOrNames_AreTargets) {
  const auto columns = open("file,cat,dog\na.jpg,1,0\nb.jpg,0,0\nc.jpg,1.0,1\n",
                            R"(, "label_column": ["dog", "cat"])", 2);
  EXPECT_THAT(columns->class_names(), ElementsAre("dog", "cat"));
  EXPECT_THAT(targets_of(*columns, 0, 2), ElementsAre(0, 1));
  EXPECT_THAT(targets_of(*columns, 1, 2), ElementsAre(0, 0));
  EXPECT_THAT(targets_of(*columns, 2, 2), ElementsAre(1, 1));
  const auto names =
      open("file,label\na.jpg,sun sea\nb.jpg,\nc.jpg,sun\n", R"(, "label_separator": " ")", 2);
  EXPECT_THAT(names->class_names(), ElementsAre("sea", "sun"));
  EXPECT_THAT(targets_of(*names, 0, 2), ElementsAre(1, 1));
  EXPECT_THAT(targets_of(*names, 1, 2), ElementsAre(0, 0));
  EXPECT_THAT(targets_of(*names, 2, 2), ElementsAre(0, 1));
  EXPECT_THAT(names->columns().back().name, "targets");
}

TEST_F(ImageTable, WholeNumbersWithAPoint_AreNumbers) {
  const auto source = open("file,label\na.jpg,1.0\nb.jpg,0.00\n", "", 11);
  EXPECT_THAT(source->class_names(), IsEmpty());
  EXPECT_THAT(labels_of(*source), ElementsAre(1, 0));
  const auto versions = open("file,label\na.jpg,1.0\nb.jpg,1.5\n", "", 2);
  EXPECT_THAT(versions->class_names(), ElementsAre("1.0", "1.5"));
}

TEST_F(ImageTable, RowsOfOneFileThatDisagree_AreRefused) {
  EXPECT_EQ(open("file,label\na.jpg,rose\na.jpg,rose\nb.jpg,tulip\n", "")->size(), 3);
  const auto refused = IsUsageError(folder_ / "photos/train.csv:4");
  EXPECT_THAT(thrown_by([&] { open("file,label\na.jpg,rose\nb.jpg,tulip\na.jpg,tulip\n", ""); }),
              refused);
  const std::string several = R"(, "label_separator": " ")";
  EXPECT_EQ(open("file,label\na.jpg,sun sea\na.jpg,sea sun\n", several, 2)->size(), 2);
  const Error parts =
      thrown_by([&] { open("file,label\na.jpg,sun\nb.jpg,sun sea\na.jpg,sea\n", several, 2); });
  EXPECT_THAT(parts, refused);
  EXPECT_THAT(parts.what(), HasSubstr("in one row"));
}

TEST_F(ImageTable, RowsThatCannotBeUsed_AreRefusedAtTheirLine) {
  const std::string second = folder_ / "photos/train.csv:3";
  for (const char* row : {"missing.jpg,rose", "b.jpg,", ",rose"}) {
    EXPECT_THAT(thrown_by([&] { open(std::string("file,label\na.jpg,rose\n") + row + "\n", ""); }),
                IsUsageError(second))
        << row;
  }
  EXPECT_THAT(thrown_by([&] {
                open("file,x,y\na.jpg,1,0\nb.jpg,2,0\n", R"(, "label_column": ["x", "y"])", 2);
              }),
              IsUsageError(second));
  EXPECT_THAT(thrown_by([&] { open("file,label\na.jpg,rose\nb.jpg,tulip\n", "", 3); }),
              IsUsageError("model.num_classes"));
  EXPECT_THAT(thrown_by([&] { open("name,label\na.jpg,rose\n", ""); }).what(),
              HasSubstr("data.image_column"));
  EXPECT_THAT(thrown_by([&] { open("", ""); }).failure(), HasSubstr("empty"));
}

TEST_F(ImageTable, NumbersAndShares_AreColumnsOfTheirOwn) {
  const std::string two = R"(, "label_column": ["x", "y"], "label_type": )";
  const auto numbers = open("file,x,y\na.jpg,-1.5,2e3\nb.jpg,0,7\n", two + "\"number\"", 2);
  ASSERT_EQ(numbers->columns().size(), 2u);
  EXPECT_EQ(numbers->columns()[1].name, "targets");
  EXPECT_THAT(targets_of(*numbers, 0, 2), ElementsAre(-1.5f, 2000.0f));
  EXPECT_THAT(numbers->class_names(), IsEmpty());
  const auto shares = open("file,x,y\na.jpg,0.25,0.75\nb.jpg,1,0\n", two + "\"share\"", 2);
  EXPECT_THAT(labels_of(*shares), ElementsAre(1, 0));
  EXPECT_THAT(shares->class_names(), ElementsAre("x", "y"));
  std::vector<float> row(2);
  void* const to[] = {nullptr, nullptr, row.data()};
  shares->fill(0, 0, to);
  EXPECT_THAT(row, ElementsAre(0.25f, 0.75f));
}

TEST_F(ImageTable, RowsWithoutNumbers_AreNamed) {
  const std::string two = R"(, "label_column": ["x", "y"], "label_type": )";
  const auto refused = [&](const std::string& rows, const std::string& type) {
    return thrown_by([&] { open("file,x,y\n" + rows, two + "\"" + type + "\"", 2); });
  };
  for (const char* row : {"a.jpg,1,red\n", "a.jpg,1,\n", "a.jpg,nan,1\n", "a.jpg,1e99,1\n"}) {
    EXPECT_THAT(refused(row, "number"), IsUsageError(folder_ / "photos/train.csv:2")) << row;
  }
  for (const char* row : {"a.jpg,0.5,0.4\n", "a.jpg,1.5,-0.5\n", "a.jpg,1,x\n"}) {
    EXPECT_THAT(refused(row, "share"), IsUsageError(folder_ / "photos/train.csv:2")) << row;
  }
  EXPECT_THAT(refused("a.jpg,1,2\na.jpg,1,3\n", "number"),
              IsUsageError(folder_ / "photos/train.csv:3"));
  EXPECT_THAT(thrown_by([&] {
                open("file,label\na.jpg,1 2\n",
                     R"(, "label_separator": " ", "label_type": "number")");
              }),
              IsUsageError("data.label_separator"));
}

}  // namespace
}  // namespace fleet::data
