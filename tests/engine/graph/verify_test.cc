#include <gmock/gmock.h>

#include "graph/program.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// What verify() finds first.
enum class Finding { kNone, kUnset, kTwice, kOther };

Finding finding(const Program& program) {
  try {
    verify(program);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    const std::string what = error.what();
    if (what.ends_with("' before it is set")) return Finding::kUnset;
    return what.ends_with("' a second time") ? Finding::kTwice : Finding::kOther;
  }
  return Finding::kNone;
}

// A temporary that a section for each of `writers` sets, and one for `reader` reads.
struct Shared {
  Program program;
  VarId x, y;
  Shared(const std::vector<Predicate>& writers, const Predicate& reader, int flags = 0) {
    for (int i = 0; i < flags; ++i) program.add_flag("flag" + std::to_string(i));
    x = program.feed("x", DType::kFloat32, {4});
    y = program.temporary("y");
    for (size_t i = 0; i < writers.size(); ++i) {
      const SectionId section = program.add_section("writer" + std::to_string(i), writers[i]);
      program.append(section, "relu", {x}, {y});
    }
    program.emit(program.add_section("reader", reader), "relu", {y});
  }
  Finding finding() const { return fleet::finding(program); }
};

TEST(Verify, ExclusiveWriters_MayShareATemporary) {
  const Predicate every{.every = 4}, between{.every = 4, .between = true};
  EXPECT_EQ(Shared({every, between}, {}).finding(), Finding::kNone);
  EXPECT_EQ(Shared({{.until_step = 8}, {.from_step = 8}}, {}).finding(), Finding::kNone);
  EXPECT_EQ(Shared({{.flag = 0}, {.flag = 0, .flag_value = false}}, {}, 1).finding(),
            Finding::kNone);
  EXPECT_EQ(Shared({{}, {.training = false, .sync = true}}, {.sync = true}).finding(),
            Finding::kNone);
}

TEST(Verify, GapBetweenWriters_IsRefused) {
  EXPECT_EQ(Shared({{.every = 4}, {.every = 2, .between = true}}, {}).finding(), Finding::kUnset);
  EXPECT_EQ(Shared({{.until_step = 8}, {.from_step = 9}}, {}).finding(), Finding::kUnset);
  EXPECT_EQ(Shared({{.flag = 0}}, {}, 1).finding(), Finding::kUnset);
  EXPECT_EQ(
      Shared({{.flag = 0}, {.until_step = 5, .flag = 0, .flag_value = false}}, {}, 1).finding(),
      Finding::kUnset);
  EXPECT_EQ(Shared({{}}, {.sync = true}).finding(), Finding::kUnset);
  EXPECT_EQ(Shared({}, {}).finding(), Finding::kUnset);
  EXPECT_EQ(Shared({}, {.training = false}).finding(), Finding::kUnset);
}

TEST(Verify, WritersThatMeet_AreRefused) {
  EXPECT_EQ(Shared({{.every = 4}, {.every = 3, .between = true}}, {.every = 4}).finding(),
            Finding::kTwice);
  EXPECT_EQ(Shared({{.until_step = 9}, {.from_step = 8}}, {}).finding(), Finding::kTwice);
  EXPECT_EQ(Shared({{.flag = 0}, {.flag = 1, .flag_value = false}}, {.flag = 0}, 2).finding(),
            Finding::kTwice);
  EXPECT_EQ(Shared({{.every = 2}, {.every = 2, .between = true}, {.from_step = 100}}, {}).finding(),
            Finding::kTwice);
}

TEST(Verify, WriterBehindItsReader_DoesNotCount) {
  Program program;
  const SectionId every = program.add_section("every", {.every = 3});
  const SectionId between = program.add_section("between", {.every = 3, .between = true});
  const SectionId always = program.add_section("always", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId y = program.emit(every, "relu", {x})[0];
  program.emit(always, "relu", {y});
  program.append(between, "relu", {x}, {y});
  EXPECT_EQ(finding(program), Finding::kUnset);
}

TEST(Verify, Finding_NamesTheOperationAndTheVariable) {
  const Shared shared({{.flag = 0}}, {}, 1);
  EXPECT_THAT(
      thrown_by([&] { verify(shared.program); }).what(),
      ::testing::AllOf(HasSubstr("relu 'relu.out'"), HasSubstr("reads 'y' before it is set")));
}

TEST(Verify, TwiceInOneSection_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId y = program.emit(section, "relu", {x})[0];
  program.append(section, "relu", {x}, {y});
  EXPECT_EQ(finding(program), Finding::kTwice);
}

// As DGC's ramp: each range of steps has an operation with an attribute of its own, which updates
// the same states and gives the same temporary.
TEST(Verify, RangesOfSteps_UpdateTheSameStates) {
  Program program;
  const VarId u = program.state("u", {4}, {}), v = program.state("v", {4}, {});
  const VarId sent = program.temporary("sent");
  const std::vector<int64_t> edges = {0, 10, 20, kForever};
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    const SectionId section = program.add_section(
        "ramp" + std::to_string(i), {.from_step = edges[i], .until_step = edges[i + 1]});
    const double factor = 1.0 + static_cast<double>(i);
    program.append(section, "scale", {u}, {u}, {{"scale", factor}});
    program.append(section, "scale", {v}, {v}, {{"scale", factor}});
    program.append(section, "scale", {v}, {sent}, {{"scale", factor}});
  }
  program.emit(program.add_section("after", {}), "relu", {sent});
  EXPECT_EQ(finding(program), Finding::kNone);
}

TEST(Program, SectionThatCannotBe_IsRefused) {
  Program program;
  EXPECT_THROW(program.add_section("a", {.every = 0}), Error);
  EXPECT_THROW(program.add_section("b", {.flag = 0}), Error);
  EXPECT_THROW(program.add_section("c", {.flag = -2}), Error);
  const FlagId flag = program.add_flag("begin");
  EXPECT_EQ(program.add_flag("begin"), flag);
  EXPECT_EQ(program.add_section("d", {.flag = flag}), 0);
}

}  // namespace
}  // namespace fleet
