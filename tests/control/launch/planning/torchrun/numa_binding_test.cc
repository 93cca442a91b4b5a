#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "launch/planning/cores.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two sockets of two NUMA nodes each, a node has four cores; the second thread of core n is n + 16.
// GPUs 0 and 1 are at node 1, GPU 2 at node 3. Cores of a node share caches in pairs, but for node
// 3, where three share one.
struct Numa : ::testing::Test {
  Numa() : root(::testing::TempDir() + "numa." + std::to_string(::getpid())) {
    for (int node = 0; node < 4; ++node) {
      const std::string first = std::to_string(4 * node), last = std::to_string(4 * node + 3);
      write("sys/devices/system/node/node" + std::to_string(node) + "/cpulist",
            first + "-" + last + "," + std::to_string(4 * node + 16) + "-" +
                std::to_string(4 * node + 19));
    }
    for (int cpu = 0; cpu < 32; ++cpu) add_cpu(cpu);
    const std::vector<std::pair<std::string, int>> gpus = {
        {"0000:17:00.0", 1}, {"0000:3b:00.0", 1}, {"0000:b1:00.0", 3}};
    for (const auto& [address, node] : gpus) {
      std::filesystem::create_directories(root + "/proc/driver/nvidia/gpus/" + address);
      write("sys/bus/pci/devices/" + address + "/numa_node", std::to_string(node));
    }
  }
  ~Numa() override { std::filesystem::remove_all(root); }

  void add_cpu(int cpu) {
    const int core = cpu % 16, node = core / 4;
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
    write(folder + "/topology/physical_package_id", std::to_string(node / 2));
    write(folder + "/topology/thread_siblings_list",
          std::to_string(core) + "," + std::to_string(core + 16));
    write(folder + "/cache/index0/type", "Instruction");
    write(folder + "/cache/index0/level", "9");
    write(folder + "/cache/index0/shared_cpu_list", std::to_string(cpu));
    write(folder + "/cache/index3/type", "Unified");
    write(folder + "/cache/index3/level", "3");
    const int pair = core / 2 * 2;
    const std::string shared = node == 3 && core == 12 ? "12,28"
                               : node == 3             ? "13-15,29-31"
                                           : std::to_string(pair) + "-" + std::to_string(pair + 1) +
                                                 "," + std::to_string(pair + 16) + "-" +
                                                 std::to_string(pair + 17);
    write(folder + "/cache/index3/shared_cpu_list", shared);
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::vector<int> cores(NumaBinding binding, int gpu, std::vector<int> allowed = {}) const {
    const bool every = allowed.empty();
    for (int cpu = 0; every && cpu < 32; ++cpu) allowed.push_back(cpu);
    return cores_near_gpu(numa_system(std::move(allowed), root), binding, gpu);
  }
  Error refusal(NumaBinding binding, int gpu, std::vector<int> allowed) const {
    return thrown_by([&] { cores_near_gpu(numa_system(std::move(allowed), root), binding, gpu); });
  }
  std::string root;
};

TEST_F(Numa, Nodes_AreCountedIfTheKernelTells) {
  EXPECT_EQ(numa_nodes(root), 1);
  write("sys/devices/system/node/online", "0-3\n");
  EXPECT_EQ(numa_nodes(root), 4);
}

TEST_F(Numa, Node_IsTheGpusNode) {
  EXPECT_THAT(cores(NumaBinding::kNode, 0), ElementsAre(4, 5, 6, 7, 20, 21, 22, 23));
  EXPECT_THAT(cores(NumaBinding::kNode, 2), ElementsAre(12, 13, 14, 15, 28, 29, 30, 31));
}

TEST_F(Numa, Node_OnlyCoresThatMayBeUsed) {
  EXPECT_THAT(cores(NumaBinding::kNode, 1, {0, 5, 23}), ElementsAre(5, 23));
  EXPECT_THAT(refusal(NumaBinding::kNode, 2, {0, 1}), IsUsageError("--numa_binding"));
}

TEST_F(Numa, Socket_IsAllNodesOfIt) {
  EXPECT_THAT(cores(NumaBinding::kSocket, 0),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
}

TEST_F(Numa, Exclusive_SharesOutPhysicalCores) {
  EXPECT_THAT(cores(NumaBinding::kExclusive, 0), ElementsAre(4, 5, 20, 21));
  EXPECT_THAT(cores(NumaBinding::kExclusive, 1), ElementsAre(6, 7, 22, 23));
  EXPECT_THAT(cores(NumaBinding::kExclusive, 0, {4, 5, 6}),
              ElementsAre(4, 5));  // the first gets one more
  EXPECT_THAT(cores(NumaBinding::kExclusive, 1, {4, 5, 6}), ElementsAre(6));
  EXPECT_THAT(refusal(NumaBinding::kExclusive, 1, {4, 20}).what(),
              HasSubstr("1 usable cores and 2 GPUs"));
}

TEST_F(Numa, CoreComplex_AnotherCacheForEachGpuLargestFirst) {
  EXPECT_THAT(cores(NumaBinding::kCoreComplex, 0), ElementsAre(4, 5, 20, 21));
  EXPECT_THAT(cores(NumaBinding::kCoreComplex, 1), ElementsAre(6, 7, 22, 23));
  EXPECT_THAT(cores(NumaBinding::kCoreComplex, 2), ElementsAre(13, 14, 15, 29, 30, 31));
}

TEST_F(Numa, GpuThatIsNotThere_IsRefused) {
  EXPECT_THAT(refusal(NumaBinding::kNode, 3, {0}), IsUsageError("--numa_binding"));
  std::filesystem::remove_all(root + "/proc");
  EXPECT_THAT(refusal(NumaBinding::kNode, 0, {0}), IsUsageError("--numa_binding"));
}

}  // namespace
}  // namespace fleet
