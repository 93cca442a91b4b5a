// Shape rules of the collective operations.
#include "ops/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using testing::HasSubstr;

struct Net {
  Net() {
    section = program.add_section("always", {});
    x = program.feed("x", DType::kFloat32, {6, 5});
    program.add_group({.name = "three", .ranks = {4, 2, 7}});
    program.add_group({.name = "four", .ranks = {0, 1, 2, 3}});
  }
  const Var& emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program.var(program.emit(section, type, std::move(inputs), std::move(attributes))[0]);
  }
  Program program;
  SectionId section;
  VarId x;
};

TEST(CollectiveShapes, AllGather_HasTheRowsOfAllRanks) {
  Net net;
  EXPECT_EQ(net.emit("all_gather", {net.x}).shape, (Shape{18, 5}));
  EXPECT_EQ(net.emit("all_gather", {net.x}, {{"communicator", int64_t{1}}}).shape, (Shape{24, 5}));
  const VarId scalar = net.program.feed("s", DType::kFloat32, {});
  EXPECT_THROW(net.emit("all_gather", {scalar}), Error);
}

TEST(CollectiveShapes, ReduceScatter_HasAPartOfTheRows) {
  Net net;
  EXPECT_EQ(net.emit("reduce_scatter", {net.x}).shape, (Shape{2, 5}));
  try {
    net.emit("reduce_scatter", {net.x}, {{"communicator", int64_t{1}}});
    FAIL() << "six rows among four ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("[6, 5] does not divide among 4 ranks"));
  }
}

TEST(CollectiveShapes, Recv_IsWhatItsAttributesSay) {
  Net net;
  const Var& y = net.emit("recv", {},
                          {{"peer", int64_t{2}},
                           {"shape", std::vector<int64_t>{3, 4}},
                           {"dtype", std::string("bfloat16")}});
  EXPECT_EQ(y.shape, (Shape{3, 4}));
  EXPECT_EQ(y.dtype, DType::kBFloat16);
  EXPECT_THROW(net.emit("recv", {}, {{"dtype", std::string("float31")}}), Error);
}

TEST(CollectiveShapes, InPlace_WantsTheSameVariablesOfOneType) {
  Net net;
  const VarId other = net.program.feed("i", DType::kInt32, {6, 5});
  for (const std::string type : {"all_reduce", "reduce", "broadcast"}) {
    EXPECT_NO_THROW(net.program.make_op(net.section, type, {net.x}, {net.x}));
    EXPECT_THROW(net.program.make_op(net.section, type, {net.x}, {other}), Error) << type;
    EXPECT_THROW(net.program.make_op(net.section, type, {net.x, other}, {net.x, other}), Error)
        << type;
  }
}

TEST(CollectiveShapes, RankOrGroupThatIsNotThere_IsRefused) {
  Net net;
  const auto make = [&](const std::string& type, std::vector<VarId> out, Attributes attributes) {
    net.program.make_op(net.section, type, {net.x}, std::move(out), std::move(attributes));
  };
  for (const int64_t rank : {-1, 3}) {
    EXPECT_THROW(make("broadcast", {net.x}, {{"root", rank}}), Error);
    EXPECT_THROW(make("reduce", {net.x}, {{"root", rank}}), Error);
    EXPECT_THROW(make("send", {}, {{"peer", rank}}), Error);
    EXPECT_THROW(net.emit("recv", {}, {{"peer", rank}}), Error);
  }
  EXPECT_THROW(make("all_reduce", {net.x}, {{"communicator", int64_t{2}}}), Error);
  EXPECT_THROW(make("all_reduce", {net.x}, {{"op", std::string("mean")}}), Error);
}

TEST(CollectiveText, Send_PrintsWithoutAResult) {
  Net net;
  net.program.append(net.section, "send", {net.x}, {}, {{"peer", int64_t{1}}});
  EXPECT_THAT(print_text(net.program), HasSubstr("\n  send(x) {peer=1}\n"));
}

}  // namespace
}  // namespace fleet
