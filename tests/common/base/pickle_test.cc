#include "base/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace fleet {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

std::string failure(const std::string& bytes, Pickle::Limits limits = {}) {
  try {
    Pickle("file", limits).read(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.where(), "file");
    return error.failure();
  }
  return {};
}

// pickle.dumps({"n": -5, "list": [1, 300, None, True], "pair": ("a", 2.5)}, protocol=2)
const std::string kDict =
    "\x80\x02}q\0(X\1\0\0\0nq\1J\xfb\xff\xff\xffX\4\0\0\0listq\2]q\3(K\1M,\1N\x88"
    "eX\4\0\0\0pairq\4X\1\0\0\0aq\5G@\4\0\0\0\0\0\0\x86q\6u."s;

TEST(Pickle, Dict_IsReadWithItsValues) {
  Pickle pickle("file", {});
  pickle.read(kDict + "more");
  EXPECT_EQ(pickle.size(), kDict.size());
  EXPECT_EQ(pickle.find(pickle.root(), "n")->number, -5);
  const Pickle::Value list = pickle.find(pickle.root(), "list").value();
  ASSERT_EQ(list.kind, Pickle::Kind::kList);
  const auto& items = pickle.list(list);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[1].number, 300);
  EXPECT_EQ(items[2].kind, Pickle::Kind::kNone);
  EXPECT_EQ(items[3].kind, Pickle::Kind::kBool);
  const Pickle::Value pair = pickle.find(pickle.root(), "pair").value();
  EXPECT_EQ(pickle.text(pickle.list(pair)[0]), "a");
  EXPECT_FALSE(pickle.find(pickle.root(), "absent"));
}

TEST(Pickle, CutOff_IsRefusedAtEveryLength) {
  for (size_t size = 0; size < kDict.size(); ++size) {
    EXPECT_NE(failure(kDict.substr(0, size)), "") << size;
  }
  EXPECT_EQ(failure(kDict), "");
}

TEST(Pickle, Names_AreRefusedWithoutASubclass) {
  EXPECT_THAT(failure("\x80\x02"
                      "cposix\nsystem\n(X\2\0\0\0ls"
                      "tR."s),
              HasSubstr("asks for 'posix.system'"));
  EXPECT_THAT(failure("\x80\x02"
                      "K\1Q."s),
              HasSubstr("outside"));
  EXPECT_THAT(failure("\x80\x02i__main__\nX\n."), HasSubstr("instruction 0x69"));
}

TEST(Pickle, MoreThanItsLimits_IsRefused) {
  EXPECT_THAT(failure(kDict, {.bytes = kDict.size() - 1}), HasSubstr("too large"));
  for (const char* one : {"]", "(", "N\x94"}) {
    std::string many = "\x80\x04";
    for (int i = 0; i < 1000; ++i) many += one;
    EXPECT_THAT(failure(many, {.values = 999}), HasSubstr("too many values")) << one;
  }
  EXPECT_NE(failure("\x80\x02X\xff\xff\xff\xff"s), "") << "a text longer than the file";
  EXPECT_NE(failure("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s), "");
}

}  // namespace
}  // namespace fleet
