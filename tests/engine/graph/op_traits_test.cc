#include <gtest/gtest.h>

#include <string>

#include "graph/op.h"

namespace fleet {
namespace {

struct Color {
  std::string name = "none";
};
struct Mark {};

TEST(OpTraits, NotAdded_IsNotFound) {
  OpDef def;
  def.add_trait<Mark>();
  EXPECT_EQ(def.find_trait<Color>(), nullptr);
  EXPECT_NE(def.find_trait<Mark>(), nullptr);
}

TEST(OpTraits, AddedTwice_IsOne) {
  OpDef def;
  EXPECT_EQ(def.add_trait<Color>().name, "none");
  def.add_trait<Color>().name = "gray";
  EXPECT_EQ(def.add_trait<Color>().name, "gray");
  EXPECT_EQ(def.find_trait<Color>()->name, "gray");
}

// The registry stores a copy of what the operation's file defines.
TEST(OpTraits, OfACopy_AreItsOwn) {
  OpDef def;
  def.add_trait<Color>().name = "white";
  OpDef copy = def;
  copy.add_trait<Color>().name = "black";
  EXPECT_EQ(def.find_trait<Color>()->name, "white");
  EXPECT_EQ(copy.find_trait<Color>()->name, "black");
}

}  // namespace
}  // namespace fleet
