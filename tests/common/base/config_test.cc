#include "base/config.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Schema sample() {
  Schema data;
  data.integer("batch_size", 32, 1, 1e6, "samples a rank").text("root", "", "folder").required();
  Schema schema;
  schema.section("data", data)
      .number("lr", 0.1, 0, 10, "learning rate")
      .choice("mode", "fast", {"fast", "slow"}, "how")
      .boolean("shuffle", true, "order")
      .integers("steps", {30, 60}, "where");
  return schema;
}

std::string message_of(const ConfigTree& tree) {
  try {
    tree.validate(sample());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(ConfigTree, FileThenSet_LaterWinsWithOrigin) {
  ConfigTree tree =
      ConfigTree::from_json(R"({"data": {"root": "/a", "batch_size": 8}})", "job.json");
  tree.set("data.batch_size", "64", "--set");
  tree.set("steps", "1,2", "--set");
  const Settings settings = tree.validate(sample());
  EXPECT_EQ(settings.integer("data.batch_size"), 64);
  EXPECT_EQ(settings.origin("data.batch_size"), "--set");
  EXPECT_EQ(settings.origin("data.root"), "job.json");
  EXPECT_FALSE(settings.given("lr"));
  EXPECT_THAT(settings.integers("steps"), ElementsAre(1, 2));
  EXPECT_EQ(settings.section("data").text("root"), "/a");
  EXPECT_THAT(split(settings.print(), '\n'), Contains("data.batch_size = 64  (--set)"));
}

TEST(ConfigTree, ListWithoutItsQuotes_IsRefused) {
  Schema schema;
  schema.texts("names", {}, "who");
  const auto names = [&](const std::string& given) {
    ConfigTree tree;
    tree.set("names", given, "--set");
    return tree.validate(schema).texts("names");
  };
  EXPECT_THAT(thrown_by([&] { names("[a, b]"); }), IsUsageError("--set"));
  EXPECT_THAT(names(R"(["a", "b"])"), ElementsAre("a", "b"));
  EXPECT_THAT(names("[ab]*,c[0-9]"), ElementsAre("[ab]*", "c[0-9]"));
  EXPECT_THAT(names("[a]"), ElementsAre("[a]"));
  EXPECT_THAT(names(""), ElementsAre());
}

TEST(ConfigTree, OneTextForAListOfTexts_IsAListOfOne) {
  Schema schema;
  schema.texts("names", {}, "who").numbers("steps", {}, "when");
  const auto names = [&](const std::string& json) {
    return ConfigTree::from_json(json, "job.json").validate(schema).texts("names");
  };
  EXPECT_THAT(names(R"({"names": "a, b"})"), ElementsAre("a, b"));
  EXPECT_THAT(thrown_by([&] { names(R"({"names": 3})"); }), IsUsageError("job.json"));
  EXPECT_THAT(thrown_by([&] { names(R"({"steps": 3})"); }), IsUsageError("job.json"));
}

TEST(ConfigTree, KeyWithoutAName_IsRefused) {
  const Schema schema =
      Schema().section("data", Schema().integer("batch_size", 32, 1, 64, "samples"));
  ConfigTree tree;
  tree.set("data.", "3", "--set");
  EXPECT_THAT(thrown_by([&] { tree.validate(schema); }), IsUsageError("--set"));
  const ConfigTree file = ConfigTree::from_json(R"({"data": {"": 3}})", "job.json");
  EXPECT_THAT(thrown_by([&] { file.validate(schema); }), IsUsageError("job.json"));
  ConfigTree::from_json(R"({"data": {}})", "job.json").validate(schema);
}

TEST(ConfigTree, EmptyChoice_IsShown) {
  Schema schema;
  schema.choice("rule", "", {"", "balanced"}, "how");
  EXPECT_EQ(schema.help(), "rule: a string one of \"\", balanced (default \"\"). how\n");
}

TEST(ConfigTree, UnknownKey_NamesNearest) {
  const ConfigTree tree = ConfigTree::from_json(R"({"data": {"root": "x", "batchsize": 8}})", "j");
  EXPECT_THAT(message_of(tree),
              ::testing::AllOf(HasSubstr("'data.batchsize'"), HasSubstr("'data.batch_size'?")));
}

TEST(ConfigTree, UnknownKeyOfAnotherPlace_NamesWhereItBelongs) {
  Schema schema = sample();
  schema.section("data",
                 Schema().integer("image.size", 8, 1, 99, "").integer("crop.size", 8, 1, 99, ""));
  const auto complaint = [&](const std::string& path) -> std::string {
    ConfigTree tree;
    tree.set(path, "1", "j");
    tree.set("data.root", "x", "j");
    try {
      tree.validate(schema);
    } catch (const Error& error) {
      return error.next();
    }
    return "no error";
  };
  EXPECT_EQ(complaint("data.size"), "did you mean 'data.image.size' or 'data.crop.size'?");
  EXPECT_EQ(complaint("data.imag"), "did you mean 'data.image'?");
  EXPECT_EQ(complaint("data.image.batch_size"), "did you mean 'data.batch_size'?");
  EXPECT_EQ(complaint("data.image.batch_sizes"), "did you mean 'data.batch_size'?");
}

TEST(ConfigTree, AbbreviatedKey_NamesTheKeyOrTheSection) {
  Schema schema;
  schema.section("rule", Schema().number("low", 0, 0, 1, "").number("learning_rate", 0, 0, 1, ""))
      .section("optimizer", Schema().text("name", "sgd", ""))
      .section("learning_rate", Schema().number("base", 0, 0, 1, ""));
  const auto hint = [&](const std::string& path) {
    ConfigTree tree;
    tree.set(path, "1", "j");
    return thrown_by([&] { tree.validate(schema); }).next();
  };
  EXPECT_EQ(hint("rule.lr"), "did you mean 'rule.learning_rate'?");
  EXPECT_EQ(hint("optimizer.lr"), "did you mean the section 'learning_rate'?");
  EXPECT_EQ(hint("lr"), "did you mean the section 'learning_rate'?");
  EXPECT_EQ(hint("rule.xy"), "known: rule.low, rule.learning_rate");
}

TEST(ConfigTree, PythonsBooleans_AreTaken) {
  ConfigTree tree = ConfigTree::from_json(R"({"data": {"root": "x"}, "shuffle": False})", "j");
  EXPECT_FALSE(tree.validate(sample()).boolean("shuffle"));
  tree.set("shuffle", "True", "--set");
  EXPECT_TRUE(tree.validate(sample()).boolean("shuffle"));
}

TEST(ConfigTree, RenameAndOverlay_MoveValuesWithTheirOrigin) {
  ConfigTree tree = ConfigTree::from_json(R"({"a": {"b": 1, "c": 2}, "ab": 3})", "job.json");
  EXPECT_THAT(tree.paths("a."), ElementsAre("a.b", "a.c"));
  tree.rename("a.b", "a.c");
  EXPECT_EQ(tree.peek("a.c"), "1");
  EXPECT_EQ(tree.peek("a.b"), std::nullopt);
  ConfigTree over;
  over.set("a.c", "5", "--set");
  tree.overlay(over);
  EXPECT_EQ(tree.peek("a.c"), "5");
  EXPECT_EQ(tree.origin("a.c"), "--set");
  EXPECT_EQ(tree.peek("ab"), "3");
}

TEST(ConfigTree, BadValues_SayWhatIsAllowed) {
  const auto with = [](const std::string& extra) {
    return message_of(ConfigTree::from_json("{\"data\": {\"root\": \"x\"}, " + extra + "}", "j"));
  };
  EXPECT_EQ(with("\"lr\": -1"), "j: 'lr' cannot be -1; it must be a number, from 0 to 10");
  EXPECT_EQ(with("\"mode\": \"quick\""),
            "j: 'mode' cannot be \"quick\"; it must be a string, one of fast, slow");
  EXPECT_NE(with("\"shuffle\": 1"), "");
  EXPECT_NE(with("\"steps\": [1, 2.5]"), "");
  EXPECT_THAT(with("\"lr\": {}"), HasSubstr("'lr' cannot be {}"));
}

TEST(ConfigTree, ObjectsInLists_ArePassedAsTextsToKeysThatTakeThem) {
  Schema schema;
  schema.texts("slots", {}, "slots").or_objects().texts("files", {}, "files");
  const auto texts = [&](const ConfigTree& tree) { return tree.validate(schema).texts("slots"); };
  const std::string list = R"([{"name": "a", "dim": 2}, "b"])";
  const std::vector<std::string> both = {R"({"name":"a","dim":2})", "b"};
  EXPECT_EQ(texts(ConfigTree::from_json("{\"slots\": " + list + "}", "j")), both);
  ConfigTree tree;
  tree.set("slots", list, "--set");
  EXPECT_EQ(texts(tree), both);
  for (const char* other : {R"({"files": [{"name": "a"}]})", R"({"slots": [["a"]]})"}) {
    EXPECT_THROW(ConfigTree::from_json(other, "j").validate(schema), Error) << other;
  }
}

TEST(ConfigTree, IntegerBeyondTheLargest_IsNotANegativeOne) {
  Schema schema;
  schema.integer("label", 0, -9e15, 9e15, "a label");
  const auto tree = ConfigTree::from_json("{\"label\": 18446744073709551615}", "j");  // 2^64 - 1
  EXPECT_THROW(tree.validate(schema), Error);
}

TEST(ConfigTree, SectionsThatAreNone_AreNamed) {
  const auto complaint = [](const std::string& extra) {
    return message_of(ConfigTree::from_json("{\"data\": {\"root\": \"x\"}, " + extra + "}", "j"));
  };
  EXPECT_EQ(complaint("\"dta\": {\"root\": \"y\", \"batch_size\": 3}"),
            "j: unknown section 'dta'; did you mean 'data'?");
  EXPECT_EQ(complaint("\"logging\": {}"), "j: unknown section 'logging'; known: data");
  EXPECT_THAT(complaint("\"data.mode\": {}"), HasSubstr("unknown key 'data.mode'"));
  ConfigTree tree;
  tree.set("data", "5", "--set");
  tree.set("data.root", "x", "--set");
  EXPECT_EQ(message_of(tree),
            "--set: 'data' is a section, not a value; write an object with its keys, such as "
            "'data.batch_size'");
  EXPECT_THAT(message_of(ConfigTree::from_json(R"({"data": {}})", "j")),
              HasSubstr("required key 'data.root'"));
}

TEST(ConfigTree, KeyGivenTwice_IsNamed) {
  const auto complaint = [](const std::string& json) -> std::string {
    try {
      ConfigTree::from_json(json, "j");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(complaint(R"({"lr": 1, "data": {"root": "x"}, "lr": 2})"),
              HasSubstr("'lr' is given twice"));
  EXPECT_NE(complaint(R"({"data": {"root": "x", "root": "x"}})"), "no error");
  EXPECT_NE(complaint(R"({"data": {"root": "x"}, "lr": 1, "data": {"batch_size": 1}})"),
            "no error");
  EXPECT_NE(complaint(R"({"data": {"root": "x"}, "data.root": "y"})"), "no error");
  EXPECT_EQ(complaint(R"({"a": {"root": 1}, "b": {"root": 1, "c": {"root": 2}}})"), "no error");
}

TEST(ConfigTree, RequiredKeyMissing_Error) {
  EXPECT_THAT(message_of(ConfigTree::from_json("{}", "j")), HasSubstr("required key 'data.root'"));
}

TEST(ConfigTree, SyntaxError_GivesLine) {
  try {
    ConfigTree::from_json("{\n\"a\": }", "job.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 2"));
  }
}

}  // namespace
}  // namespace fleet
