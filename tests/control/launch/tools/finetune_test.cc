// fleetrun finetune: its words, its refusals, and the job file.
#include "launch/tools/finetune.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/commands.h"
#include "base/file.h"
#include "tests/errors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Works in a folder with photographs and weights.
class FineTuneCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    folder_ = fs::path(::testing::TempDir()) / ("finetune_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    for (const char* path :
         {"photos/train/cat", "photos/train/dog", "logs/old", "flat/cat", "bare", "split/train"}) {
      fs::create_directories(folder_ / path);
    }
    fs::current_path(folder_);
    write_file_atomically("w.pth", "");
    write_file_atomically("bare/a.jpg", "");
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  static Error refusal(const std::vector<std::string>& words) {
    return thrown_by([&] { find_command("finetune")->run_unparsed(words); });
  }
  // Names of files in the working directory.
  static std::vector<std::string> job_files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(".")) {
      if (entry.path().extension() == ".json") names.push_back(entry.path().filename());
    }
    return names;
  }

  fs::path before_, folder_;
};

TEST_F(FineTuneCommand, ValueOfAnOption_IsNotTheFolder) {
  const FineTuning given =
      read_fine_tuning({"--log_dir", "logs", "photos/", "--weights", "w.pth", "-np", "2", "--set",
                        "train.epochs=2", "--device", "cpu"});
  EXPECT_EQ(given.folder, "photos");
  EXPECT_EQ(given.weights, "w.pth");
  EXPECT_THAT(given.launcher, ElementsAre("--log_dir", "logs", "-np", "2"));
  EXPECT_THAT(given.job, ElementsAre("--set", "train.epochs=2", "--device", "cpu"));
}

TEST_F(FineTuneCommand, FolderWithASlash_IsTheSameJob) {
  for (const char* folder : {"photos", "photos/", "./photos", "photos//"}) {
    const FineTuning given = read_fine_tuning({folder, "--weights=./w.pth"});
    EXPECT_EQ(given.job_file(), "photos.json");
    EXPECT_EQ(write_fine_tuning_job(given), std::string(folder) == "photos") << folder;
  }
  // As versions before this wrote it.
  write_file_atomically("flat.json", R"({"checkpoint": {"weights": "w.pth"},
                                         "data": {"source": "image_folder", "root": "flat/"}})");
  EXPECT_FALSE(write_fine_tuning_job(read_fine_tuning({"flat", "--weights=w.pth"})));
}

TEST_F(FineTuneCommand, FolderThatTheLineNames_HasTheClasses) {
  for (const char* setting : {"--set=data.train.folder=pictures", "--set=data.source=image_list"}) {
    EXPECT_EQ(read_fine_tuning({"bare", "--weights=w.pth", setting}).folder, "bare") << setting;
  }
}

TEST_F(FineTuneCommand, AnotherJob_IsNotReplaced) {
  write_file_atomically("photos.json", "{}");
  write_file_atomically("v.pth", "");
  EXPECT_THAT(refusal({"photos", "--weights=w.pth"}), IsUsageError("finetune"));
  EXPECT_EQ(read_file("photos.json"), "{}");
  fs::remove("photos.json");
  ASSERT_TRUE(write_fine_tuning_job(read_fine_tuning({"photos", "--weights=w.pth"})));
  EXPECT_THAT(refusal({"photos", "--weights=v.pth"}), IsUsageError("finetune"));
}

TEST_F(FineTuneCommand, WrongLine_LeavesNoJobFile) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"photos", "--weights", "wrong.pth"},
                                             {"photos"},
                                             {"--weights", "w.pth"},
                                             {"nophotos", "--weights", "w.pth"},
                                             {"w.pth", "--weights", "w.pth"},
                                             {"bare", "--weights", "w.pth"},
                                             {"split", "--weights", "w.pth"},
                                             {"photos", "flat", "--weights", "w.pth"}}) {
    EXPECT_THAT(refusal(words), IsUsageError("finetune")) << words[0];
  }
  EXPECT_THAT(refusal({"photos", "--weights"}), IsUsageError("--weights"));
  EXPECT_THAT(refusal({"photos", "--weight=w.pth"}), Advises(testing::HasSubstr("--weights")));
  const Error unknown = refusal({"photos", "--weights=w.pth", "--log_dri", "logs"});
  EXPECT_THAT(unknown, IsUsageError());
  EXPECT_EQ(unknown.failure().find("photos.json"), std::string::npos) << "there is no such file";
  EXPECT_THAT(refusal({"photos", "--weights=w.pth", "--nproc_per_node=many"}), IsUsageError());
  EXPECT_THAT(job_files(), IsEmpty());
}

}  // namespace
}  // namespace fleet
