#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "node/console.h"

namespace fleet {
namespace {

struct Copies : ::testing::Test {
  Copies() : path(::testing::TempDir() + "line_copies." + std::to_string(::getpid())) {}
  ~Copies() override { ::unlink(path.c_str()); }
  void begin(const std::vector<std::string>& filters) {
    wire::CopiedLines wanted;
    wanted.set_path(path);
    wanted.mutable_filters()->Add(filters.begin(), filters.end());
    copies.begin(wanted);
  }
  std::string path;
  LineCopies copies;
};

TEST_F(Copies, LinesWithOneOfTheTexts_AreKeptWithTheirLabel) {
  begin({"apple", "fig"});
  EXPECT_TRUE(copies.wanted());
  copies.offer("[a]:", "an apple\n");
  copies.offer("[a]:", "a pear\n");
  copies.offer("[b]:", "no end, a fig");
  EXPECT_EQ(read_file(path), "[a]:an apple\n[b]:no end, a fig\n");
}

TEST_F(Copies, WithoutTexts_NoFileIsMade) {
  begin({});
  EXPECT_FALSE(copies.wanted());
  copies.offer("", "line\n");
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST_F(Copies, LinkOfAnotherUser_IsNotFollowed) {
  const std::string target = path + ".target";
  write_file_atomically(target, "theirs");
  ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
  begin({"x"});
  copies.offer("", "x\n");
  EXPECT_EQ(read_file(target), "theirs");
  ::unlink(target.c_str());
}

}  // namespace
}  // namespace fleet
