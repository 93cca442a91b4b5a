#include "node/proc_view.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/proc_number.h"

namespace fleet {
namespace {

const std::string kOfThree = "Name:\tsh\nTgid:\t900\nNSpid:\t900\t70\t5\nThreads:\t1";

TEST(ProcView, PidOfAStatus_IsThatOfItsNamespace) {
  EXPECT_EQ(ProcView(0).pid_in(kOfThree), 900);
  EXPECT_EQ(ProcView(1).pid_in(kOfThree), 70);
  EXPECT_EQ(ProcView(2).pid_in(kOfThree), 5);
  EXPECT_EQ(ProcView(3).pid_in(kOfThree), -1);  // it is above
}

TEST(ProcView, StatusWithoutPids_HasNone) {
  EXPECT_EQ(ProcView(1).pid_in("Name:\tsh\nTgid:\t900"), -1);
  EXPECT_EQ(ProcView(1).pid_in(""), -1);
}

TEST(ProcView, WithoutProc_NothingHasAPlace) {
  const ProcView none(-1);
  EXPECT_FALSE(none.usable());
  EXPECT_EQ(none.number_of(1), -1);
  EXPECT_EQ(none.pid_in(kOfThree), -1);
}

// The tests themselves run with a /proc of their own namespace.
TEST(ProcView, OwnProc_HasPids) {
  ASSERT_TRUE(ProcView::own().usable());
  EXPECT_EQ(ProcView::own().number_of(::getpid()), ::getpid());
  EXPECT_EQ(ProcView::own().pid_of(::getppid()), ::getppid());
  EXPECT_EQ(own_proc_number(), ::getpid());
  EXPECT_TRUE(std::filesystem::exists(proc_folder(::getpid()) + "/stat"));
}

}  // namespace
}  // namespace fleet
