// --predict, as a user types it: behind the job file, with fleetrun and alone.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
class PredictOption : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(job_.run_worker({"job.json", "--set", "train.max_steps=4", "--set",
                               "data.class_names=a,b,c,d,e,f,g,h,i,j"},
                              &error_),
              0)
        << error_;
  }
  static std::vector<nlohmann::json> lines_of(const std::string& text) {
    std::vector<nlohmann::json> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with("{")) all.push_back(nlohmann::json::parse(line));
    }
    return all;
  }
  const std::string images_ = source_folder() + "/tests/golden/images/";
  TrainingJob job_;
  std::string error_;
};

TEST_F(PredictOption, TwoRanksAndOne_WriteTheSameFile) {
  ASSERT_EQ(job_.run_worker({"job.json", "--predict", images_ + "rgb.bmp", images_, "missing.jpg",
                             "--set", "data.batch_size=4", "--set", "data.eval.resize=28"},
                            &error_),
            0)
      << error_;
  EXPECT_THAT(error_, HasSubstr("(1 could not be used)"));
  const std::string alone = read_file(job_.path("predictions.jsonl"));
  const auto all = lines_of(alone);
  ASSERT_EQ(all.size(), 92u);
  EXPECT_EQ(all[0]["file"], images_ + "rgb.bmp");
  EXPECT_EQ(all[0]["top"].size(), 5u);
  EXPECT_EQ(all[0]["class_name"].get<std::string>().size(), 1u);
  EXPECT_EQ(all.back()["file"], "missing.jpg");
  EXPECT_TRUE(all.back().contains("error"));

  const std::string named = nlohmann::json{images_ + "rgb.bmp", images_, "missing.jpg"}.dump();
  const auto run = job_.start("two", {"--nproc_per_node=2"},
                              {"predict.input=" + named, "data.batch_size=4", "data.eval.resize=28",
                               "predict.output=two/lines.jsonl"});
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(read_file(job_.path("two/lines.jsonl")), alone);
}

TEST_F(PredictOption, StandardOutput_HasTheLinesAlone) {
  ASSERT_EQ(job_.run_worker({"job.json", "--predict", images_ + "rgb.bmp", "--set",
                             "predict.output=-", "--set", "data.eval.resize=28"},
                            &error_),
            0)
      << error_;
  EXPECT_EQ(lines_of(read_file(job_.path("worker.out"))).size(), 1u);
}

TEST_F(PredictOption, WithoutImages_IsUsage) {
  EXPECT_EQ(job_.run_worker({"job.json", "--predict", "nowhere.txt"}, &error_), 2);
}

}  // namespace
}  // namespace fleet
