// Formats of click data: Criteo's rows, PaddleRec's slot text, Paddle's MultiSlot, libsvm.
#include <gmock/gmock.h>

#include <map>

#include "data/click_columns.h"
#include "tests/engine/data/clicks.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using testing::Click;
using testing::click_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::open_data;
using testing::TempFolder;
using testing::with_files;
using testing::write;

class ClickFormatTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& source, const std::string& text,
                               const std::string& more = "") const {
    write(folder_ / "a", text);
    return open_data(source, with_files(folder_ / "a", more));
  }
  Click row(const std::string& source, const std::string& text,
            const std::string& more = "") const {
    return click_of(*open(source, text, more), 0);
  }
  // Why a single line is broken; "" if it is not.
  std::string fault(const std::string& source, const std::string& line,
                    const std::string& more = "") const {
    try {
      open(source, line + "\n", R"("on_damaged": "fail")" + (more.empty() ? "" : ", " + more));
    } catch (const Error& error) {
      EXPECT_THAT(error, IsUsageError(folder_ / "a:1"));
      return error.failure();
    }
    return "";
  }
  // A test of settings, which opens no file.
  static Error refused(const std::string& source, const std::string& more) {
    return thrown_by(
        [&] { declared_columns(testing::settings_of(source, with_files("none", more)), {}); });
  }

  const TempFolder folder_;
};

// A row of Criteo's data, with fields replaced.
std::string criteo(std::map<int, std::string> fields = {}, int count = 40) {
  std::string line;
  for (int i = 0; i < count; ++i) {
    if (i > 0) line += '\t';
    const std::string usual = i == 0 ? "1" : i <= 13 ? std::to_string(i) : "68fd1e64";
    line += fields.contains(i) ? fields[i] : usual;
  }
  return line;
}

TEST_F(ClickFormatTest, Criteo_ScalesIntegersAndHashesCategories) {
  const Click click = row("criteo", criteo({{0, "0"}, {2, "-3"}, {3, ""}, {5, "64000"}, {14, ""}}));
  EXPECT_EQ(click.label, 0);
  ASSERT_EQ(click.dense.size(), 13u);
  EXPECT_FLOAT_EQ(click.dense[0], 1 / 20.0f);
  EXPECT_EQ(click.dense[1], 0);
  EXPECT_EQ(click.dense[2], 0);
  EXPECT_EQ(click.dense[4], 1);
  EXPECT_FLOAT_EQ(click.dense[12], 13 / 50.0f);
  ASSERT_EQ(click.ids.size(), 26u);
  const IdSpace ids(1'000'001);
  EXPECT_EQ(click.ids[0], ids.hashed(0, UINT64_MAX));
  EXPECT_EQ(click.ids[1], ids.hashed(1, 0x68fd1e64));
  EXPECT_NE(click.ids[1], click.ids[2]);
}

TEST_F(ClickFormatTest, CriteoKeys_ChangeScaleAndIdSpace) {
  std::string ranges = "2", least = "1";
  for (int i = 1; i < 13; ++i) {
    ranges += ",4";
    least += ",0";
  }
  const Click click =
      row("criteo", criteo({{1, "7"}}),
          R"("dense_min": [)" + least + R"(], "dense_range": [)" + ranges + R"(], "ids": 0)");
  EXPECT_EQ(click.dense[0], 3);
  EXPECT_EQ(click.dense[3], 1);
  EXPECT_EQ(click.ids[5], static_cast<int64_t>(hash_id(5, 0x68fd1e64) & INT64_MAX));
}

TEST_F(ClickFormatTest, CriteoFaults_AreNamed) {
  EXPECT_EQ(fault("criteo", criteo()), "");
  EXPECT_EQ(fault("criteo", criteo({{7, "-9223372036854775808"}})), "");
  EXPECT_THAT(fault("criteo", criteo({}, 39)), HasSubstr("39 fields"));
  EXPECT_THAT(fault("criteo", criteo({}, 41)), HasSubstr("more than 40"));
  EXPECT_THAT(fault("criteo", criteo({}, 900)), HasSubstr("more than 40"));
  EXPECT_THAT(fault("criteo", criteo({{0, "2"}})), HasSubstr("'2'"));
  EXPECT_THAT(fault("criteo", criteo({{0, ""}})), HasSubstr("label"));
  EXPECT_THAT(fault("criteo", criteo({{3, "1.5"}})), HasSubstr("integer 3"));
  EXPECT_THAT(fault("criteo", criteo({{4, "9223372036854775808"}})), HasSubstr("integer 4"));
  EXPECT_THAT(fault("criteo", criteo({{39, "xyz"}})), HasSubstr("category 26"));
  EXPECT_THAT(fault("criteo", criteo({{20, "68fd1e6468fd1e641"}})), HasSubstr("category 7"));
}

TEST_F(ClickFormatTest, CriteoKeysOfWrongLength_AreRefused) {
  EXPECT_THAT(refused("criteo", R"("dense_min": [0, 1])"), IsUsageError("data.dense_min"));
  EXPECT_THAT(refused("criteo", R"("dense_range": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])"),
              IsUsageError("data.dense_range"));
}

TEST_F(ClickFormatTest, CriteoPredictions_TakeRowsWithAndWithoutLabels) {
  std::string unlabelled = criteo();
  write(folder_ / "a", criteo() + "\n" + unlabelled.substr(2) + "\n" + criteo({}, 38) + "\n");
  const Settings data = testing::settings_of("criteo", "{}");
  const UnlabelledSamples samples = open_unlabelled(data, {folder_ / "a"}, {.rank = 1});
  ASSERT_EQ(samples.groups.size(), 1u);
  ASSERT_THAT(samples.groups[0].samples, ElementsAre(0, 1));
  EXPECT_EQ(click_of(*samples.groups[0].source, 0), click_of(*samples.groups[0].source, 1));
  EXPECT_NE(samples.failures[2], "");
}

// PaddleRec's slots, as its readers have them.
std::string slot_text(bool whole = true) {
  std::string line = "click:1";
  for (int i = 0; i < 13; ++i) line += " dense_feature:0." + std::to_string(10 + i);
  for (int i = 1; i <= 26; ++i) {
    if (whole || i != 5) line += " " + std::to_string(i) + ":" + std::to_string(1000 * i);
  }
  return line;
}

TEST_F(ClickFormatTest, SlotText_ReadsPaddleRecsCriteoByDefault) {
  const Click click = row("slot_text", slot_text(false));
  EXPECT_EQ(click.label, 1);
  ASSERT_EQ(click.dense.size(), 13u);
  EXPECT_FLOAT_EQ(click.dense[12], 0.22f);
  ASSERT_EQ(click.ids.size(), 26u);
  EXPECT_EQ(click.ids[0], 1000);
  EXPECT_EQ(click.ids[4], -1);  // the missing slot
  EXPECT_EQ(click.ids[25], 26000);
}

constexpr char kSlots[] =
    R"("slots": [{"name": "y", "type": "label"}, {"name": "a", "max_len": 3, "pad": 0},
                 {"name": "f", "type": "float", "dim": 2, "pad": 0.5}, "b"])";

TEST_F(ClickFormatTest, SlotText_PadsAndIgnoresOtherSlotsAndOrder) {
  const Click click = row("slot_text", "b:7\t other:x a:1 f:-2.5e1 a:2  y:0", kSlots);
  EXPECT_EQ(click.label, 0);
  EXPECT_THAT(click.dense, ElementsAre(-25, 0.5));
  EXPECT_THAT(click.ids, ElementsAre(1, 2, 0, 7, -1, -1));
}

TEST_F(ClickFormatTest, SlotTextHashes_AreThoseOfTheSlot) {
  const Click click =
      row("slot_text", "y:1 a:5 b:5", std::string(kSlots) + R"(, "id_values": "hash")");
  EXPECT_EQ(click.ids[0], IdSpace(1'000'001).hashed(0, 5));
  EXPECT_EQ(click.ids[3], IdSpace(1'000'001).hashed(1, 5));
}

TEST_F(ClickFormatTest, SlotTextFaults_AreNamed) {
  const auto why = [&](const std::string& line) { return fault("slot_text", line, kSlots); };
  EXPECT_EQ(why("y:1"), "");
  EXPECT_THAT(why("a:1"), HasSubstr("label"));
  EXPECT_THAT(why("y:3"), HasSubstr("'3'"));
  EXPECT_THAT(why("y:1 a"), HasSubstr("'a'"));
  EXPECT_THAT(why("y:1 :1"), HasSubstr("':1'"));
  EXPECT_THAT(why("y:1 a:1 a:2 a:3 a:4"), HasSubstr("max_len"));
  EXPECT_THAT(why("y:1 f:1 f:2 f:3"), HasSubstr("dim"));
  EXPECT_THAT(why("y:1 y:1"), HasSubstr("dim"));
  EXPECT_THAT(why("y:1 a:-1"), HasSubstr("'-1'"));
  EXPECT_THAT(why("y:1 a:1000001"), HasSubstr("data.ids"));
  EXPECT_THAT(why("y:1 a:18446744073709551616"), HasSubstr("64 bits"));
  EXPECT_THAT(why("y:1 f:1e39"), HasSubstr("32 bits"));
  EXPECT_THAT(why("y:1 f:nan"), HasSubstr("32 bits"));
}

TEST_F(ClickFormatTest, SlotsThatDoNotFit_AreRefused) {
  for (const char* slots :
       {R"([])", R"(["a"])", R"([{"name": "y", "type": "label"}])",
        R"([{"name": "y", "type": "label"}, {"name": "z", "type": "label"}, "a"])",
        R"([{"name": "y", "type": "label"}, "a", "a"])",
        R"([{"name": "y", "type": "labels"}, "a"])",
        R"([{"name": "y", "type": "label", "dim": 1}, "a"])",
        R"([{"name": "y", "type": "label"}, {"name": "a", "dim": 2}])",
        R"([{"name": "y", "type": "label"}, {"name": "a", "max_len": 0}])",
        R"([{"name": "y", "type": "label"}, {"name": "a", "max_len": 1.5}])",
        R"([{"name": "y", "type": "label"}, {"name": "a", "max_len": "1"}])",
        R"([{"name": "y", "type": "label"}, {"name": "a", "pad": 1000001}])",
        R"([{"name": "y", "type": "label"}, {"name": "a b"}])",
        R"([{"name": "y", "type": "label"}, {"name": "a*"}])",
        R"([{"name": "y", "type": "label"}, {"nome": "a"}])",
        R"([{"name": "y", "type": "label"}, {"type": "int"}])"}) {
    EXPECT_THAT(refused("multislot", R"("slots": )" + std::string(slots)),
                IsUsageError("data.slots"))
        << slots;
  }
}

TEST_F(ClickFormatTest, MultiSlot_ReadsCountsAndValuesInOrder) {
  const Click click = row("multislot", "1 1 2 5 6 1 0.25 1 99\r\n",
                          std::string(kSlots) + R"(, "id_values": "ids")");
  EXPECT_EQ(click.label, 1);
  EXPECT_THAT(click.dense, ElementsAre(0.25, 0.5));
  EXPECT_THAT(click.ids, ElementsAre(5, 6, 0, 99, -1, -1));
}

TEST_F(ClickFormatTest, MultiSlot_HashesByDefault) {
  const Click click = row("multislot", "1 1 1 5 2 0 1 1 18446744073709551615", kSlots);
  EXPECT_EQ(click.ids[0], IdSpace(1'000'001).hashed(0, 5));
  EXPECT_EQ(click.ids[3], IdSpace(1'000'001).hashed(1, UINT64_MAX));
}

TEST_F(ClickFormatTest, MultiSlotFaults_AreNamed) {
  const auto why = [&](const std::string& line) { return fault("multislot", line, kSlots); };
  EXPECT_EQ(why("1 1 1 5 1 0 1 9"), "");
  EXPECT_THAT(why("1 1 0 1 0 1 9"), HasSubstr("0 values"));
  EXPECT_THAT(why("1 1 4 5 6 7 8 1 0 1 9"), HasSubstr("max_len"));
  EXPECT_THAT(why("1 1 1 5 1 0"), HasSubstr("'b'"));
  EXPECT_THAT(why("1 1 1 5 1 0 2 9"), HasSubstr("instead of 2"));
  EXPECT_THAT(why("1 1 1 5 1 0 1 9 7"), HasSubstr("'7'"));
  EXPECT_THAT(why("1 1 -1 5 1 0 1 9"), HasSubstr("'-1'"));
  EXPECT_THAT(why("1 1 x 5 1 0 1 9"), HasSubstr("'x'"));
  EXPECT_THAT(why("1 5 1 5 1 0 1 9"), HasSubstr("'5'"));
  EXPECT_THAT(why("1 1 1 5.5 1 0 1 9"), HasSubstr("'5.5'"));
}

TEST_F(ClickFormatTest, LibSvm_ReadsValuesAndDummies) {
  const Click ones = row("libsvm", "+1 3:1 17:1.0  # a comment", R"("max_len": 3)");
  EXPECT_EQ(ones.label, 1);
  EXPECT_THAT(ones.ids, ElementsAre(3, 17, -1));
  EXPECT_TRUE(ones.weights.empty());
  const Click dummy = row("libsvm", "-1 3 17 4", R"("max_len": 3)");
  EXPECT_EQ(dummy.label, 0);
  EXPECT_THAT(dummy.ids, ElementsAre(3, 17, 4));
  const Click valued =
      row("libsvm", "0 3:0.5 4:-2 5", R"("max_len": 4, "values": "weights", "id_values": "hash")");
  EXPECT_THAT(valued.weights, ElementsAre(0.5, -2, 1, 0));
  EXPECT_EQ(valued.ids[1], IdSpace(1'000'001).hashed(0, 4));
  EXPECT_EQ(valued.ids[3], -1);
}

TEST_F(ClickFormatTest, LibSvmFaults_AreNamed) {
  const auto why = [&](const std::string& line) {
    return fault("libsvm", line, R"("max_len": 2)");
  };
  EXPECT_EQ(why("1"), "");
  EXPECT_THAT(why("# nothing"), HasSubstr("label"));
  EXPECT_THAT(why("2 1:1"), HasSubstr("'2'"));
  EXPECT_THAT(why("1 1:0.5"), HasSubstr("weights"));
  EXPECT_THAT(why("1 1:1 2:1 3:1"), HasSubstr("max_len"));
  EXPECT_THAT(why("1 qid:7 1:1"), HasSubstr("'qid:7'"));
  EXPECT_THAT(why("1 1:x"), HasSubstr("'1:x'"));
  EXPECT_THAT(why("1 -1:1"), HasSubstr("'-1:1'"));
  EXPECT_THAT(why("1 1000001:1"), HasSubstr("data.ids"));
}

TEST_F(ClickFormatTest, WeightsOfLibSvm_AreAColumn) {
  const std::vector<Column> columns = declared_columns(
      testing::settings_of("libsvm", with_files("a", R"("values": "weights", "max_len": 7)")), {});
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[2].name, "weights");
  EXPECT_EQ(columns[2].shape, Shape({1, 7}));
}

}  // namespace
}  // namespace fleet::data
