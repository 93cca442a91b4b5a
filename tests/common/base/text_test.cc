#include "base/text.h"

#include <gmock/gmock.h>

#include "base/nearest_path.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kColours = {"red", "green", "blue"};

TEST(Trim, BlanksAndNewlines_AreRemovedAtTheEndsOnly) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Split, PartsAreTrimmedAndEmptyOnesKept) {
  EXPECT_THAT(split("10.0.0.1, 10.0.0.2 ,", ','), ElementsAre("10.0.0.1", "10.0.0.2", ""));
  EXPECT_THAT(split("one", ','), ElementsAre("one"));
  EXPECT_THAT(split("", ','), IsEmpty());
}

TEST(Join, OfSplit_IsTheText) {
  EXPECT_EQ(join(split("a,b,,c", ','), ","), "a,b,,c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(JoinFirst, LongList_CountsTheNamesThatItLeavesOut) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  EXPECT_EQ(join_first(names, 4), "a, b, c, d");
  EXPECT_EQ(join_first(names, 3), "a, b, c and 1 more");
  EXPECT_EQ(join_first({}, 3), "");
}

TEST(NearestName, OneTypo_IsMeant) {
  EXPECT_EQ(nearest_name("gren", kColours), "green");
  EXPECT_EQ(nearest_name("bleu", kColours), "blue");
  EXPECT_EQ(nearest_name("BLUE", kColours), "blue");
}

TEST(NearestName, NothingAlike_IsEmpty) { EXPECT_EQ(nearest_name("transparent", kColours), ""); }

TEST(NearestName, Abbreviation_IsMeant) {
  const std::vector<std::string> keys = {"low",      "learning_rate", "batch_size", "weight_decay",
                                         "momentum", "epsilon",       "low"};
  EXPECT_EQ(nearest_name("lr", keys), "learning_rate");
  EXPECT_EQ(nearest_name("bs", keys), "batch_size");
  EXPECT_EQ(nearest_name("bsz", keys), "batch_size");
  EXPECT_EQ(nearest_name("wd", keys), "weight_decay");
  EXPECT_EQ(nearest_name("mom", keys), "momentum");
  EXPECT_EQ(nearest_name("eps", keys), "epsilon");
  EXPECT_EQ(nearest_name("lwo", keys), "low");
  const std::vector<std::string> alike = {"min_size", "max_size", "mean_std"};
  EXPECT_EQ(nearest_name("ms", alike), "");  // several
}

TEST(Suggestion, NothingAlike_ListsAll) {
  EXPECT_EQ(suggestion("gren", kColours), "did you mean 'green'?");
  EXPECT_EQ(suggestion("transparent", kColours), "known: red, green, blue");
}

TEST(PathSuggestion, LastName_CountsBeforeTheWholePath) {
  const std::vector<std::string> paths = {"amp", "amp_configs.incr_ratio", "a.k_steps",
                                          "b.k_steps"};
  EXPECT_EQ(path_suggestion("incr_ratio", paths), "did you mean 'amp_configs.incr_ratio'?");
  EXPECT_EQ(path_suggestion("c.k_steps", paths), "did you mean 'a.k_steps' or 'b.k_steps'?");
  EXPECT_EQ(path_suggestion("amp_configs.inc_ratio", paths),
            "did you mean 'amp_configs.incr_ratio'?");
  EXPECT_EQ(path_suggestion("inc_ratio", paths), "did you mean 'amp_configs.incr_ratio'?");
  EXPECT_EQ(path_suggestion("transparent", paths), "");
}

TEST(PathSuggestion, MistypedSection_IsTheOneThatIsMeant) {
  const std::vector<std::string> paths = {"merge_configs.k_steps", "sgd_configs.k_steps"};
  EXPECT_EQ(path_suggestion("merge_config.k_steps", paths),
            "did you mean 'merge_configs.k_steps'?");
}

// Most letters of a path are those of its section.
TEST(NearestPath, LastName_MustBeNearToo) {
  const std::vector<std::string> paths = {"rule.low", "rule.learning_rate", "a.trained",
                                          "b.epochs"};
  EXPECT_EQ(nearest_path("rule.lr", paths), "rule.learning_rate");
  EXPECT_EQ(nearest_path("rule.xy", paths), "");
  EXPECT_EQ(nearest_path("rule.learning_rat", paths), "rule.learning_rate");
  EXPECT_EQ(nearest_path("c.epoch", paths), "b.epochs");
  EXPECT_EQ(path_suggestion("rule.lr", paths), "did you mean 'rule.learning_rate'?");
}

TEST(ParseInt, AnythingButOneWholeNumber_IsRefused) {
  long long value = 7;
  EXPECT_TRUE(parse_int("-12", &value));
  EXPECT_EQ(value, -12);
  for (const char* text : {"", "1x", " 1", "1.5", "99999999999999999999", "0x10", "+1"}) {
    EXPECT_FALSE(parse_int(text, &value)) << text;
  }
}

TEST(ParseDouble, AnythingButOneWholeNumber_IsRefused) {
  double value = 0;
  EXPECT_TRUE(parse_double("1e-4", &value));
  EXPECT_DOUBLE_EQ(value, 1e-4);
  for (const char* text : {"", "1e", "0.1 ", "1,5"})
    EXPECT_FALSE(parse_double(text, &value)) << text;
}

TEST(ParseSize, UnitsArePowersOf1024) {
  int64_t bytes = 0;
  for (const auto& [text, value] : std::map<std::string, int64_t>{{"4096", 4096},
                                                                  {"64K", 64 << 10},
                                                                  {"64kB", 64 << 10},
                                                                  {"1.5G", 3LL << 29},
                                                                  {"2TiB", 2LL << 40}}) {
    EXPECT_TRUE(parse_size(text, &bytes)) << text;
    EXPECT_EQ(bytes, value) << text;
  }
  for (const char* text : {"", "K", "1X", "1KX", "-1", "-1K", "1e9M", "1 M", "12.5"}) {
    EXPECT_FALSE(parse_size(text, &bytes)) << text;
  }
}

}  // namespace
}  // namespace fleet
