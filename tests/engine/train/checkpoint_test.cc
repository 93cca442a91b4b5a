#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "tensor/host.h"
#include "tests/engine/train/save_checkpoint.h"
#include "tests/errors.h"
#include "train/safetensors.h"

namespace {
int folder_sync_error = 0;  // 0: none
}  // namespace

// Takes the place of the C library's in all tests of this program. They do not wait for a disk:
// none of them outlives its machine.
extern "C" int fsync(int file) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) return -1;
  if (folder_sync_error != 0 && S_ISDIR(status.st_mode)) {
    errno = folder_sync_error;
    return -1;
  }
  return 0;
}

namespace fleet {
namespace {

using ::testing::HasSubstr;

struct FolderSyncFails {
  explicit FolderSyncFails(int error) { folder_sync_error = error; }
  ~FolderSyncFails() { folder_sync_error = 0; }
  FolderSyncFails(const FolderSyncFails&) = delete;
};

namespace fs = std::filesystem;

// A parameter, its momentum and a running statistic.
Program small_program(int64_t size) {
  Program program;
  program.add_section("forward", {});
  program.parameter("fc.weight", {size, 2}, {Init::kUniform, -1, 1});
  program.state("fc.weight.momentum", {size, 2}, {Init::kUniform, 2, 3});
  program.state("bn.running_mean", {size}, {Init::kConstant, 5, 0});
  return program;
}

void overwrite(const std::string& path, size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
}

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/checkpoint_test_" + std::to_string(::getpid());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::unique_ptr<Executor> make(int64_t size, uint64_t seed) {
    auto executor =
        std::make_unique<Executor>(plan_program(small_program(size), {}), device_, nullptr);
    executor->initialize(seed);
    return executor;
  }
  static std::vector<float> all_values(Executor& executor) {
    std::vector<float> all;
    for (VarId id = 0; id < executor.program().var_count(); ++id) {
      const auto values = executor.values<float>(id);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  // It leaves the values alone.
  Error load_error(const std::string& folder, const std::string& model, int64_t size) {
    auto executor = make(size, 9);
    const auto before = all_values(*executor);
    const Error error = thrown_by([&] { load_checkpoint(folder, model, *executor); });
    EXPECT_EQ(all_values(*executor), before) << "a refused checkpoint changed something";
    return error;
  }
  HostDevice device_;
  std::string root_;
  const TrainingPosition position_{.step = 7,
                                   .epoch = 1,
                                   .batch = 3,
                                   .seed = 42,
                                   .global_batch = 8,
                                   .model = "mlp",
                                   .data = "64 samples"};
};

TEST_F(Checkpoint, SaveThenLoad_RestoresEverything) {
  auto saved = make(3, 1);
  const std::string folder = save_checkpoint(root_, position_, *saved, 0);
  EXPECT_EQ(folder, root_ + "/step_00000007");
  auto loaded = make(3, 2);
  ASSERT_NE(all_values(*loaded), all_values(*saved));
  const TrainingPosition back = load_checkpoint(folder, "mlp", *loaded);
  EXPECT_EQ(all_values(*loaded), all_values(*saved));
  EXPECT_EQ(back.step, 7);
  EXPECT_EQ(back.epoch, 1);
  EXPECT_EQ(back.batch, 3);
  EXPECT_EQ(back.seed, 42u);
  EXPECT_EQ(back.data, "64 samples");
}

TEST_F(Checkpoint, Position_IsReadWithoutTheWeights) {
  auto executor = make(1, 1);
  TrainingPosition position = position_;
  position.merged_steps = 4;
  const std::string folder = save_checkpoint(root_, position, *executor, 0);
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    fs::remove(folder + file);
  }
  const auto back = position_of_checkpoint(folder);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 7);
  EXPECT_EQ(back->global_batch, 8);
  EXPECT_EQ(back->merged_steps, 4);
  fs::remove(folder + "/state.json");
  EXPECT_FALSE(position_of_checkpoint(folder));
}

TEST_F(Checkpoint, ModelFile_HoldsParametersAndStatisticsOnly) {
  auto executor = make(3, 1);
  const TensorFile file =
      read_safetensors(save_checkpoint(root_, position_, *executor, 0) + "/model.safetensors");
  EXPECT_TRUE(file.tensors.contains("fc.weight"));
  EXPECT_TRUE(file.tensors.contains("bn.running_mean"));
  EXPECT_EQ(file.tensors.size(), 2u);
}

TEST_F(Checkpoint, Keep_RemovesTheOldestAndLatestIsTheNewest) {
  auto executor = make(1, 1);
  TrainingPosition position = position_;
  for (int64_t step : {9, 10, 100}) {
    position.step = step;
    save_checkpoint(root_, position, *executor, 2);
  }
  fs::create_directories(root_ + "/step_00000200.part");  // a save that was cut off
  EXPECT_FALSE(fs::exists(root_ + "/step_00000009"));
  EXPECT_TRUE(fs::exists(root_ + "/step_00000010"));
  EXPECT_EQ(latest_checkpoint(root_), root_ + "/step_00000100");
}

TEST_F(Checkpoint, StepsOfMoreDigits_AreTheNewest) {
  auto executor = make(1, 1);
  TrainingPosition position = position_;
  for (int64_t step : {99'999'998, 99'999'999, 100'000'000}) {
    position.step = step;
    save_checkpoint(root_, position, *executor, 2);
  }
  EXPECT_EQ(latest_checkpoint(root_), root_ + "/step_100000000");
  EXPECT_FALSE(fs::exists(root_ + "/step_99999998"));
}

// An output folder of an earlier, longer run: what was just saved must not be the one that goes.
TEST_F(Checkpoint, KeepWithLaterOnesThere_KeepsWhatWasJustSaved) {
  auto executor = make(1, 1);
  TrainingPosition position = position_;
  for (int64_t step : {40, 5, 10}) {
    position.step = step;
    save_checkpoint(root_, position, *executor, 1);
  }
  EXPECT_TRUE(fs::exists(root_ + "/step_00000010"));
  EXPECT_FALSE(fs::exists(root_ + "/step_00000005"));
  EXPECT_TRUE(fs::exists(root_ + "/step_00000040"));
}

TEST_F(Checkpoint, SetAside_RenamesToTheFirstFreeNumber) {
  EXPECT_EQ(set_checkpoints_aside(root_), std::nullopt);
  auto executor = make(1, 1);
  for (const char* number : {".1", ".2"}) {
    save_checkpoint(root_, position_, *executor, 0);
    EXPECT_EQ(set_checkpoints_aside(root_), root_ + number);
    EXPECT_TRUE(latest_checkpoint(root_ + number).has_value());
    EXPECT_FALSE(latest_checkpoint(root_).has_value());
  }
  fs::remove_all(root_ + ".1");
  fs::remove_all(root_ + ".2");
}

TEST_F(Checkpoint, OtherFolders_AreNotCheckpoints) {
  fs::create_directories(root_ + "/step_backup");
  EXPECT_EQ(latest_checkpoint(root_), std::nullopt);
  fs::create_directories(root_ + "/step_00000001");
  EXPECT_THAT(load_error(root_ + "/step_00000001", "mlp", 3),
              IsUsageError(root_ + "/step_00000001/state.json"));
}

TEST_F(Checkpoint, SameStepTwice_ReplacesIt) {
  auto first = make(3, 1), second = make(3, 2), loaded = make(3, 3);
  save_checkpoint(root_, position_, *first, 1);
  const std::string folder = save_checkpoint(root_, position_, *second, 1);
  load_checkpoint(folder, "mlp", *loaded);
  EXPECT_EQ(all_values(*loaded), all_values(*second));
  EXPECT_FALSE(fs::exists(folder + ".part"));
}

// All errors of a file system that cannot flush a folder, and says nothing about the files.
TEST_F(Checkpoint, FileSystemThatCannotSyncFolders_HoldsTheCheckpoint) {
  auto saved = make(3, 1);
  TrainingPosition position = position_;
  for (const int error : {EINVAL, EOPNOTSUPP, ENOSYS, ENOTTY, EACCES, EPERM, EBADF}) {
    const FolderSyncFails refused(error);
    ++position.step;
    const std::string folder = save_checkpoint(root_, position, *saved, 1);
    EXPECT_EQ(newest_complete_checkpoint(root_), folder) << error;
    EXPECT_FALSE(fs::exists(folder + ".part"));
  }
}

TEST_F(Checkpoint, DiskThatFails_HoldsNone) {
  auto saved = make(3, 1);
  for (const int error : {EIO, ENOSPC, EDQUOT}) {
    const FolderSyncFails failed(error);
    EXPECT_THAT(thrown_by([&] { save_checkpoint(root_, position_, *saved, 1); }),
                IsError(ErrorCode::kIo, HasSubstr("step_00000007")));
    EXPECT_EQ(latest_checkpoint(root_), std::nullopt);
  }
}

TEST_F(Checkpoint, Truncated_IsRefused) {
  auto executor = make(3, 1);
  const std::string folder = save_checkpoint(root_, position_, *executor, 0);
  const std::string path = folder + "/optimizer.safetensors";
  const std::string content = read_file(path);
  write_file_atomically(path, content.substr(0, content.size() - 4));
  EXPECT_THAT(load_error(folder, "mlp", 3), IsUsageError(path));
  write_file_atomically(folder + "/state.json", "{");
  EXPECT_THAT(load_error(folder, "mlp", 3), IsUsageError(folder + "/state.json"));
}

// Each bit of each file of a small checkpoint. Spaces in state.json mean nothing.
TEST_F(Checkpoint, OneFlippedBitAnywhere_IsRefused) {
  auto executor = make(2, 1);
  const std::string folder = save_checkpoint(root_, position_, *executor, 0);
  int64_t flips = 0;
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string path = folder + "/" + file, content = read_file(path);
    for (size_t i = 0; i < content.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        const char other = static_cast<char>(content[i] ^ 1 << bit);
        overwrite(path, i, other);
        try {
          load_checkpoint(folder, "mlp", *executor);
          EXPECT_TRUE(std::isspace(content[i]) && std::isspace(other))
              << file << ": bit " << bit << " of byte " << i;
        } catch (const DamagedFile&) {
          ++flips;
        }
      }
      overwrite(path, i, content[i]);
    }
  }
  EXPECT_GT(flips, 4000);
  load_checkpoint(folder, "mlp", *executor);
}

TEST_F(Checkpoint, WithoutAFile_IsDamaged) {
  auto executor = make(2, 1);
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string folder = save_checkpoint(root_, position_, *executor, 0);
    fs::remove(folder + "/" + file);
    EXPECT_THROW(load_checkpoint(folder, "mlp", *executor), DamagedFile) << file;
  }
}

// Its checksum fits: a later release wrote it.
TEST_F(Checkpoint, OfAnUnknownVersion_IsRefusedByNumber) {
  auto executor = make(2, 1);
  const std::string folder = save_checkpoint(root_, position_, *executor, 0);
  auto state = nlohmann::ordered_json::parse(read_file(folder + "/state.json"));
  state["version"] = 3;
  state.erase("crc32c");
  char checksum[9];
  std::snprintf(checksum, sizeof checksum, "%08x", crc32c(state.dump()));
  state["crc32c"] = checksum;
  write_file_atomically(folder + "/state.json", state.dump());
  EXPECT_THAT(load_error(folder, "mlp", 2).failure(),
              ::testing::AllOf(HasSubstr("is of version 3"), HasSubstr("versions 1 to 2")));
}

// As releases before wrote them.
TEST_F(Checkpoint, OfVersion1_IsReadWithoutChecksums) {
  auto executor = make(2, 1), loaded = make(2, 2);
  const std::string folder = save_checkpoint(root_, position_, *executor, 0);
  auto state = nlohmann::ordered_json::parse(read_file(folder + "/state.json"));
  state["version"] = 1;
  state.erase("crc32c");
  write_file_atomically(folder + "/state.json", state.dump());
  EXPECT_EQ(load_checkpoint(folder, "mlp", *loaded).step, 7);
  EXPECT_EQ(all_values(*loaded), all_values(*executor));
}

TEST_F(Checkpoint, FolderOfCheckpoints_IsRefusedWithItsNewest) {
  auto executor = make(3, 1);
  const std::string run = root_ + "/run";
  const std::string folder = save_checkpoint(run + "/checkpoints", position_, *executor, 0);
  for (const std::string& above : {run, run + "/checkpoints"}) {
    const Error error = load_error(above, "mlp", 3);
    EXPECT_THAT(error, IsUsageError(above));
    EXPECT_THAT(error.next(), HasSubstr(folder));
  }
}

TEST_F(Checkpoint, OfAnotherModel_IsRefused) {
  auto executor = make(3, 1);
  const std::string folder = save_checkpoint(root_, position_, *executor, 0);
  EXPECT_THAT(load_error(folder, "lenet", 3), IsUsageError(folder));
  EXPECT_EQ(load_error(folder, "mlp", 4).failure(),
            "'fc.weight' is float32[3, 2], the model's is float32[4, 2]");
  EXPECT_THAT(load_error(root_ + "/nothing", "mlp", 3), IsUsageError(root_ + "/nothing"));
}

TEST_F(Checkpoint, NoFolder_HasNoLatest) { EXPECT_EQ(latest_checkpoint(root_), std::nullopt); }

}  // namespace
}  // namespace fleet
