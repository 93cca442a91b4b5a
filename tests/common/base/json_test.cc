#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The text of the JsonError that `call` throws; "" if it throws none.
template <typename Call>
std::string error_of(Call call) {
  try {
    (void)call();
  } catch (const JsonError& error) {
    return error.what();
  }
  return "";
}

std::string again(std::string_view text) { return Json::parse(text).dump(); }

TEST(JsonText, ParsedAndDumped_StaysTheSame) {
  for (const char* text : {"null", "true", "false", "0", "-1", "\"\"", "[]", "{}", "[1,[2,[3]]]",
                           "{\"b\":{\"a\":[]},\"a\":{}}", "[null,true,\"x\"]"}) {
    EXPECT_EQ(again(text), text);
  }
}

TEST(JsonText, Unicode_StaysUtf8) {
  EXPECT_EQ(again("\"\\u00fc\\ud83d\\ude00\""), "\"\u00fc\U0001F600\"");
  EXPECT_EQ(Json::parse("\"\\u20ac\"").get<std::string>(), "\u20ac");
}

TEST(JsonText, Escapes_AreThoseOfJson) {
  EXPECT_EQ(Json("a\"b\\c\n\t\x01/").dump(), R"("a\"b\\c\n\t\u0001/")");
  EXPECT_EQ(Json::parse(R"("\n\/\u0041")").get<std::string>(), "\n/A");
}

TEST(JsonText, Integers_KeepAllBits) {
  EXPECT_EQ(again("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(again("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).dump(), "18446744073709551615");
  EXPECT_TRUE(Json::parse("7").is_number_unsigned());
  EXPECT_FALSE(Json::parse("-7").is_number_unsigned());
  EXPECT_TRUE(Json::parse("18446744073709551616").is_number_float());
}

TEST(JsonText, Doubles_AreTheShortestThatReadBack) {
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(1.0).dump(), "1.0");
  EXPECT_EQ(Json(1e300).dump(), "1e+300");
  EXPECT_EQ(Json(2.0 / 3).dump(), "0.6666666666666666");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(JsonText, Members_KeepTheirOrder) {
  EXPECT_EQ(again("{\"z\":1,\"a\":2,\"m\":3}"), "{\"z\":1,\"a\":2,\"m\":3}");
}

TEST(JsonText, DuplicateKeys_LastValueAtTheFirstPlace) {
  EXPECT_EQ(again("{\"b\":1,\"a\":2,\"b\":3}"), "{\"b\":3,\"a\":2}");
  std::string many = "{", kept = "{";
  for (int i = 0; i < 20; ++i) {
    many += (i > 0 ? "," : "") + ("\"k" + std::to_string(i)) + "\":0";
    kept += (i > 0 ? "," : "") + ("\"k" + std::to_string(i)) + "\":" + (i == 4 ? "2" : "0");
  }
  EXPECT_EQ(again(many + ",\"k4\":1,\"k4\":2}"), kept + "}");
}

TEST(JsonText, Indent_IsThatOfNlohmann) {
  const Json json = {{"a", Json::array({1, 2})}, {"b", Json::object()}};
  EXPECT_EQ(json.dump(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(JsonText, SyntaxError_NamesLineAndColumn) {
  EXPECT_THAT(error_of([] { return Json::parse("{\n  \"a\": ,\n}"); }),
              AllOf(HasSubstr("parse_error.101"), HasSubstr("line 2, column 8"),
                    HasSubstr("unexpected ','")));
  EXPECT_THAT(error_of([] { return Json::parse("1 2"); }),
              AllOf(HasSubstr("parse_error.101"), HasSubstr("line 1, column 3"),
                    HasSubstr("expected end of input")));
  EXPECT_EQ(error_of([] { return Json::parse("1e999"); }),
            "[json.exception.out_of_range.406] number overflow parsing '1e999'");
  EXPECT_FALSE(Json::try_parse("{\"a\":1"));
  EXPECT_TRUE(Json::try_parse("null")->is_null());
}

TEST(JsonText, Comments_OnlyIfAllowed) {
  EXPECT_EQ(Json::parse("[1 // one\n, /* two */ 2]", {}, true).dump(), "[1,2]");
  EXPECT_FALSE(Json::try_parse("[1] // one"));
}

TEST(JsonText, BytesThatAreNotUtf8_AreReplacedOrRefused) {
  EXPECT_EQ(Json("a\xff z").dump_lossy(), "\"a\uFFFD z\"");
  EXPECT_EQ(error_of([] { return Json("a\xff z").dump(); }),
            "[json.exception.type_error.316] invalid UTF-8 byte at index 1: 0xFF");
  EXPECT_FALSE(Json::try_parse("\"a\xff\""));
}

TEST(JsonText, Check_SeesDepthAndKeys) {
  std::string seen;
  const auto check = [&](JsonEvent event, int depth, const std::string& key) {
    const char names[] = {'o', 'a', 'k', 'v'};
    seen += names[static_cast<int>(event)] + std::to_string(depth) + key + " ";
  };
  EXPECT_EQ(Json::parse("{\"x\":[1,{}]}", check).dump(), "{\"x\":[1,{}]}");
  EXPECT_EQ(seen, "o0 k1x a1 v2 o2 ");
}

TEST(JsonText, CheckThatThrows_EndsTheParsing) {
  const auto check = [](JsonEvent, int depth, const std::string&) {
    if (depth > 3) throw std::out_of_range("deep");
  };
  EXPECT_THROW(Json::parse("[[[[[[", check), std::out_of_range);
}

TEST(Json, DeepText_IsTakenApartWithoutRecursion) {
  constexpr size_t kDepth = 200'000;
  EXPECT_FALSE(Json::try_parse(std::string(kDepth, '[')));
  auto deep = Json::try_parse(std::string(kDepth, '[') + std::string(kDepth, ']'));
  ASSERT_TRUE(deep);
  deep->sort_keys();
  deep.reset();
}

TEST(Json, Lists_AreObjectsIfAllElementsArePairsWithAKey) {
  EXPECT_EQ(Json({{"a", 1}, {"b", "x"}}).dump(), "{\"a\":1,\"b\":\"x\"}");
  const Json one = {{"a", nullptr}};
  EXPECT_EQ(one.dump(), "{\"a\":null}");
  EXPECT_EQ(Json({{"a", 1}, 2}).dump(), "[[\"a\",1],2]");
  EXPECT_EQ(Json({{"a", {1, 2.5}}}).dump(), "{\"a\":[1,2.5]}");
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), "[\"a\",\"b\"]");
  EXPECT_EQ(Json(std::vector<int>()).dump(), "[]");
  EXPECT_EQ(Json(std::map<std::string, double>{{"b", 2}, {"a", 0.5}}).dump(),
            "{\"a\":0.5,\"b\":2.0}");
}

TEST(Json, Growing_NullBecomesWhatIsAsked) {
  Json object, list;
  object["b"] = 1;
  object["a"]["inner"] = true;
  object["b"] = "x";
  list.push_back(object);
  list.push_back(nullptr);
  EXPECT_EQ(list.dump(), "[{\"b\":\"x\",\"a\":{\"inner\":true}},null]");
  object.erase("b");
  object.erase("c");
  EXPECT_EQ(object.dump(), "{\"a\":{\"inner\":true}}");
  EXPECT_EQ(list.at(0).size(), 2U);
}

TEST(Json, MissingKeys_AreFoundOut) {
  const Json json = {{"a", 1}};
  EXPECT_EQ(json.find("b"), nullptr);
  EXPECT_EQ(Json(3).find("b"), nullptr);
  EXPECT_FALSE(json.contains("b"));
  EXPECT_EQ(json.value("b", int64_t{7}), 7);
  EXPECT_EQ(json.value("a", int64_t{7}), 1);
  EXPECT_EQ(error_of([&] { return json.at("b"); }),
            "[json.exception.out_of_range.403] key 'b' not found");
  EXPECT_THAT(error_of([&] { return Json::array({1}).at(1); }),
              AllOf(HasSubstr("out_of_range.401"), HasSubstr("array index 1")));
}

TEST(Json, OtherTypes_AreRefused) {
  EXPECT_EQ(error_of([] { return Json(1).at("a"); }),
            "[json.exception.type_error.304] cannot use at() with number");
  EXPECT_EQ(error_of([] { return Json("x").value("a", 1); }),
            "[json.exception.type_error.306] cannot use value() with string");
  EXPECT_THAT(error_of([] { return Json(true).get<std::string>(); }),
              AllOf(HasSubstr("type_error.302"), HasSubstr("must be string, but is boolean")));
  EXPECT_THAT(error_of([] { return Json("1").get<int64_t>(); }),
              AllOf(HasSubstr("type_error.302"), HasSubstr("must be number, but is string")));
  EXPECT_THAT(error_of([] { return Json().get<std::vector<int>>(); }),
              AllOf(HasSubstr("type_error.302"), HasSubstr("must be array, but is null")));
  EXPECT_THAT(error_of([] { return Json::array().get<std::map<std::string, double>>(); }),
              AllOf(HasSubstr("type_error.302"), HasSubstr("must be object, but is array")));
}

TEST(Json, Iteration_VisitsElementsOrValues) {
  int sum = 0;
  for (const Json& one : Json::array({1, 2, 3})) sum += one.get<int>();
  EXPECT_EQ(sum, 6);
  std::string seen;
  const Json object = {{"b", 1}, {"a", 2}};
  for (const auto& [key, value] : object.items()) seen += key + value.dump();
  EXPECT_EQ(seen, "b1a2");
  const Json null, scalar = 3;
  EXPECT_EQ(null.begin(), null.end());
  EXPECT_EQ(scalar.end() - scalar.begin(), 1);
}

TEST(Json, Equality_ComparesValues) {
  EXPECT_EQ(Json(5), Json(5U));
  EXPECT_EQ(Json(5), Json(5.0));
  EXPECT_FALSE(Json(1) == Json(true));
  EXPECT_FALSE(Json("1") == Json(1));
  EXPECT_EQ(Json({{"a", {1, 2}}}), Json::parse("{\"a\":[1,2]}"));
}

TEST(Json, SortKeys_SortsAllObjects) {
  Json json = Json::parse("{\"b\":[{\"d\":1,\"c\":2}],\"a\":0}");
  json.sort_keys();
  EXPECT_EQ(json.dump(), "{\"a\":0,\"b\":[{\"c\":2,\"d\":1}]}");
}

}  // namespace
}  // namespace fleet
