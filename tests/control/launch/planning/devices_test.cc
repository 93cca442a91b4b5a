#include "launch/planning/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GpuInventory machine(int count, std::optional<std::string> visible = std::nullopt) {
  return {count, std::move(visible)};
}

std::vector<std::vector<int>> devices(std::vector<std::string> arguments, const GpuInventory& gpus,
                                      int listed = 0) {
  arguments.push_back("program");
  return local_ranks(parse_arguments(arguments).config, gpus, listed).devices;
}

Error device_error(const std::vector<std::string>& arguments, const GpuInventory& gpus,
                   int listed = 0) {
  return thrown_by([&] { devices(arguments, gpus, listed); });
}

TEST(Devices, NoGpu_IsCpuMode) {
  EXPECT_THAT(devices({}, machine(0)), ElementsAre(IsEmpty()));
  EXPECT_THAT(devices({"--nproc_per_node=3"}, machine(0)),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(Devices, NothingGiven_IsARankForEachGpu) {
  EXPECT_THAT(devices({}, machine(2)), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(Devices, WithServers_AreTheTrainersIfAsked) {
  const auto of_roles = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--server_num=1", "--worker_num=2", "program"});
    return devices_of_roles(parse_arguments(arguments).config, 1, 2, machine(4));
  };
  EXPECT_THAT(of_roles({}), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(of_roles({"--gpus=3,1"}), ElementsAre(IsEmpty(), ElementsAre(3), ElementsAre(1)));
  EXPECT_THAT(thrown_by([&] { of_roles({"--gpus=0,1,2"}); }).code(), ErrorCode::kUsage);
}

TEST(Devices, ListOfSomethingElse_EndsThere) {
  EXPECT_THAT(devices({}, machine(8, "NoDevFiles")), ElementsAre(IsEmpty()));  // of Slurm
  EXPECT_THAT(devices({}, machine(8, "MIG-aa,none,3")), ElementsAre(ElementsAre(0)));
}

TEST(Devices, Gpus_AreThoseOfTheRanks) {
  EXPECT_THAT(devices({"--gpus=2, 0"}, machine(4)), ElementsAre(ElementsAre(2), ElementsAre(0)));
}

TEST(Devices, GpusOnAMachineWithoutOne_IsAnError) {
  EXPECT_THAT(device_error({"--gpus=0"}, machine(0)), IsUsageError("--gpus 0"));
  EXPECT_THAT(device_error({"--gpus=0"}, machine(0, "0")), IsUsageError("--gpus 0"));
}

TEST(Devices, GpuThatIsNotThere_ListsThoseThatAre) {
  EXPECT_THAT(device_error({"--gpus=0,5"}, machine(2)).what(), HasSubstr("visible GPUs: 0,1"));
}

TEST(Devices, NotANumber_IsAnError) {
  EXPECT_THAT(device_error({"--gpus=all"}, machine(2)), IsUsageError("--gpus all"));
  EXPECT_THAT(device_error({"--gpus=0,,1"}, machine(2)), IsUsageError("--gpus 0,,1"));
}

TEST(Devices, Twice_IsAnError) {
  EXPECT_THAT(device_error({"--gpus=1,1"}, machine(2)), IsUsageError("--gpus 1,1"));
}

TEST(Devices, VisibleDevices_GpusAreAbsoluteAndBecomeIndices) {
  EXPECT_THAT(devices({"--gpus=7,5"}, machine(8, "4,5,6,7")),
              ElementsAre(ElementsAre(3), ElementsAre(1)));
  EXPECT_THAT(device_error({"--gpus=0"}, machine(8, "4,5")), IsUsageError("--gpus 0"));
}

TEST(Devices, VisibleUuids_GpusAreIndices) {
  EXPECT_THAT(devices({"--gpus=1"}, machine(8, "GPU-aa,GPU-bb")), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(device_error({"--gpus=2"}, machine(8, "GPU-aa,GPU-bb")), IsUsageError("--gpus 2"));
}

std::string warning(std::vector<std::string> arguments, const GpuInventory& gpus) {
  arguments.push_back("train.py");
  const LaunchConfig config = parse_arguments(arguments).config;
  return local_rank_warning(config, local_ranks(config, gpus), gpus);
}

TEST(LocalRankWarning, OtherGpusThanTheFirst_NamesThoseThatAProgramWouldTake) {
  EXPECT_THAT(warning({"--gpus=2,3"}, machine(4)),
              ::testing::AllOf(HasSubstr("--gpus 2,3 hides no GPU"), HasSubstr("takes GPUs 0,1"),
                               HasSubstr("CUDA_VISIBLE_DEVICES=2,3")));
  const std::string of_visible = warning({"--gpus=7"}, machine(8, "4,5,6,7"));
  EXPECT_THAT(of_visible, HasSubstr("takes GPU 4;"));
  EXPECT_THAT(of_visible, HasSubstr("CUDA_VISIBLE_DEVICES=7 "));
  EXPECT_NE(warning({"--gpus=4,5,6,7", "--nproc_per_node=2"}, machine(8)), "");
}

// A start exports the variable before it looks for GPUs.
TEST(LocalRankWarning, GpusOfPyTorchsLaunchers_AreTheOnlyOnesThatRanksSee) {
  for (const std::vector<std::string>& line : {std::vector<std::string>{"--include=localhost:6,7"},
                                               {"--gpu_ids=6,7", "--num_processes=2"}}) {
    std::vector<std::string> words = line;
    words.emplace_back("program");
    const std::vector<std::string> exported = parse_arguments(words).config.exported;
    EXPECT_THAT(exported, ::testing::Contains("CUDA_VISIBLE_DEVICES=6,7")) << line[0];
    EXPECT_THAT(devices(line, machine(8, "6,7")), ElementsAre(ElementsAre(0), ElementsAre(1)));
    EXPECT_EQ(warning(line, machine(8, "6,7")), "");
  }
  EXPECT_THAT(device_error({"--include=localhost:6,7"}, machine(2, "6,7")), IsUsageError());
}

TEST(LocalRankWarning, ChosenGpusOnly_IsNone) {
  EXPECT_EQ(warning({}, machine(4)), "");
  EXPECT_EQ(warning({"--gpus=0,1"}, machine(4)), "");
  EXPECT_EQ(warning({"--gpus=1,0"}, machine(4)), "");
  EXPECT_EQ(warning({"--gpus=4,5"}, machine(8, "4,5,6")), "");
  EXPECT_EQ(warning({"--nproc_per_node=2"}, machine(0)), "");
}

TEST(LocalRankWarning, ProgramThatSeesOnlyItsGpu_IsNone) {
  EXPECT_EQ(warning({"--gpus=2,3", "--virtual_local_rank"}, machine(4)), "");
  EXPECT_EQ(warning({"--gpus=2,3", "--dialect=paddle"}, machine(4)), "");
}

TEST(Devices, EverythingHidden_IsCpuMode) {
  EXPECT_THAT(devices({}, machine(8, "")), ElementsAre(IsEmpty()));
  EXPECT_THAT(devices({}, machine(8, "-1")), ElementsAre(IsEmpty()));
  EXPECT_THAT(device_error({"--gpus=0"}, machine(8, "")), IsUsageError("--gpus 0"));
}

TEST(Devices, FewerRanksThanGpus_GetContiguousSlices) {
  EXPECT_THAT(devices({"--nproc_per_node=2"}, machine(4)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(Devices, NotToBeDivided_ARankTakesTheGpuOfItsNumber) {
  EXPECT_THAT(devices({"--nproc_per_node=3"}, machine(4)),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(device_error({"--gpus=1,2,3", "--nproc_per_node=2"}, machine(4)),
              IsUsageError("--nproc_per_node 2"));
}

// mpirun and its like count processes, which may be for the cores.
TEST(Devices, MoreRanksThanGpus_OnlyOptionsOfOtherLaunchersMeanThem) {
  EXPECT_THAT(device_error({"--nproc_per_node=2"}, machine(1)), IsUsageError("--nproc_per_node 2"));
  EXPECT_THAT(devices({"-np", "2"}, machine(1)), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(Devices, ListedWithACount_AreTheFirstSoMany) {
  EXPECT_THAT(devices({}, machine(8), 2), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(devices({"--nproc_per_node=1"}, machine(8), 2), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(devices({"--gpus=4,6"}, machine(8), 2), ElementsAre(ElementsAre(4), ElementsAre(6)));
  EXPECT_THAT(device_error({}, machine(2), 4), IsUsageError("default 4"));
  EXPECT_THAT(device_error({"--gpus=4,6"}, machine(8), 4), IsUsageError("default 4"));
}

TEST(Devices, ListedWithACountOnCpus_AreRanks) {
  EXPECT_EQ(devices({}, machine(0), 3).size(), 3u);
  EXPECT_EQ(devices({"--nproc_per_node=3"}, machine(0), 3).size(), 3u);
  EXPECT_THAT(device_error({"--nproc_per_node=2"}, machine(0), 3), IsUsageError("default 3"));
}

}  // namespace
}  // namespace fleet
