#include "base/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace fleet {
namespace {

TEST(DescriptorLimit, Raised_IsWhatTheSystemAllows) {
  rlimit usual, now;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit low = {64, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_descriptor_limit();
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, usual.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &usual);
}

}  // namespace
}  // namespace fleet
