#include "base/cache_file.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fleet {
namespace {

TEST(CacheFile, Folder_IsThatOfTheCacheOrOfTheHome) {
  const auto folders = [](const char* cache, const char* home) {
    cache ? ::setenv("XDG_CACHE_HOME", cache, 1) : ::unsetenv("XDG_CACHE_HOME");
    home ? ::setenv("HOME", home, 1) : ::unsetenv("HOME");
    return cache_file("a");
  };
  const char* home = std::getenv("HOME");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::string old_home = home ? home : "", old_cache = cache ? cache : "";
  EXPECT_EQ(folders("/cache", "/home"), "/cache/fleetrun/a");
  EXPECT_EQ(folders(nullptr, "/home"), "/home/.cache/fleetrun/a");
  EXPECT_EQ(folders(nullptr, nullptr), "");
  folders(cache ? old_cache.c_str() : nullptr, home ? old_home.c_str() : nullptr);
}

TEST(CacheFile, UnusualCharacters_BecomeUnderscores) {
  EXPECT_TRUE(cache_file("NVIDIA H100/1-2.txt").ends_with("/fleetrun/NVIDIA_H100_1-2.txt"));
}

}  // namespace
}  // namespace fleet
