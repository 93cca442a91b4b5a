#include "backend/cuda/autotune_cache.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace fleet::cuda {
namespace {

class AutotuneCacheTest : public ::testing::Test {
 protected:
  AutotuneCacheTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "choices.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/deeper/cudnn.txt";
  }
  ~AutotuneCacheTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
};

TEST_F(AutotuneCacheTest, Added_IsFoundByTheNextProcess) {
  AutotuneCache first(path_);
  EXPECT_FALSE(first.find("conv a"));
  first.add("conv a", "engine 1 knobs");
  first.add("conv b", "engine 2 knobs 3=4");
  const AutotuneCache second(path_);
  EXPECT_EQ(second.find("conv a"), "engine 1 knobs");
  EXPECT_EQ(second.find("conv b"), "engine 2 knobs 3=4");
  EXPECT_FALSE(second.find("conv"));
}

TEST_F(AutotuneCacheTest, TwoProcesses_KeepWhatBothFound) {
  AutotuneCache one(path_), other(path_);
  one.add("a", "1");
  other.add("b", "2");
  const AutotuneCache later(path_);
  EXPECT_EQ(later.find("a"), "1");
  EXPECT_EQ(later.find("b"), "2");
}

TEST_F(AutotuneCacheTest, DamagedFile_IsIgnoredAndWrittenAnew) {
  AutotuneCache(path_).add("a", "1");
  const std::string whole = read_file(path_);
  for (const std::string& damaged :
       {std::string("nonsense"), std::string(), whole.substr(0, whole.size() - 3),
        whole.substr(0, whole.find("end")), "fleetrun choices 9\n" + whole}) {
    write_file_atomically(path_, damaged);
    AutotuneCache cache(path_);
    EXPECT_FALSE(cache.find("a")) << damaged;
    cache.add("b", "2");
    EXPECT_EQ(AutotuneCache(path_).find("b"), "2") << damaged;
  }
}

TEST_F(AutotuneCacheTest, FileOfAnotherGpu_IsIgnoredAndWrittenAnew) {
  AutotuneCache(path_, "H100, cuDNN 1").add("a", "1");
  EXPECT_EQ(AutotuneCache(path_, "H100, cuDNN 1").find("a"), "1");
  AutotuneCache other(path_, "H200, cuDNN 1");
  EXPECT_FALSE(other.find("a"));
  other.add("b", "2");
  EXPECT_FALSE(AutotuneCache(path_, "H200, cuDNN 1").find("a"));
  EXPECT_EQ(AutotuneCache(path_, "H200, cuDNN 1").find("b"), "2");
}

// Ranks that start together: each looks, takes the lock, looks again, and measures what is missing.
TEST_F(AutotuneCacheTest, ProcessesThatMeasureAtOnce_AgreeOnOneChoice) {
  constexpr int kProcesses = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      AutotuneCache cache(path_);
      for (const std::string key : {"a", "b", "c"}) {
        const UniqueFd lock = cache.lock();
        cache.reload();
        if (!cache.find(key)) cache.add(key, std::to_string(getpid()));
        std::ofstream(folder_ + "/" + std::to_string(i) + key) << *cache.find(key);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (const std::string key : {"a", "b", "c"}) {
    const auto choice = AutotuneCache(path_).find(key);
    ASSERT_TRUE(choice);
    for (int i = 0; i < kProcesses; ++i) {
      EXPECT_EQ(read_file(folder_ + "/" + std::to_string(i) + key), *choice);
    }
  }
}

TEST_F(AutotuneCacheTest, FolderThatCannotBeWritten_KeepsThemInMemory) {
  write_file_atomically(folder_ + "/file", "");
  AutotuneCache cache(folder_ + "/file/cudnn.txt");
  EXPECT_FALSE(cache.lock());
  cache.add("a", "1");
  EXPECT_EQ(cache.find("a"), "1");
}

TEST(AutotuneCacheFile, Name_SaysGpuAndVersion) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(autotune_cache_file("cudnn", "NVIDIA H200", 91900),
            "/cache/fleetrun/cudnn-NVIDIA_H200-91900.txt");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/users/x", 1);
  EXPECT_EQ(autotune_cache_file("cudnn", "a/b", 1), "/users/x/.cache/fleetrun/cudnn-a_b-1.txt");
}

}  // namespace
}  // namespace fleet::cuda
