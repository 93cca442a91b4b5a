// Jobs whose loss becomes infinite or NaN, through the real fleetrun: codes, lines, and the
// verdict.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/training/training_job.h"
#include "train/finite_check.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kDiverges = {"learning_rate.base=1e6", "data.batch_size=16",
                                            "train.evaluate_every=0"};

TEST(NotFinite, DivergingJob_EndsWithACodeOfItsOwn) {
  TrainingJob job;
  std::vector<std::string> arguments = {"job.json"};
  for (const std::string& text : kDiverges) arguments.insert(arguments.end(), {"--set", text});
  std::string error;
  EXPECT_EQ(job.run_worker(arguments, &error), kExitNotFinite) << error;
  EXPECT_THAT(error, HasSubstr("there is no checkpoint yet"));
}

TEST(NotFinite, DivergingRanks_EndTheJobWithTheirCode) {
  TrainingJob job;
  const auto run = job.start("two", {"--nproc_per_node=2"}, kDiverges);
  EXPECT_EQ(run->wait(), kExitNotFinite) << run->output();
}

// The memory of another process.
class ProcessMemory {
 public:
  explicit ProcessMemory(pid_t pid)
      : folder_("/proc/" + std::to_string(pid)),
        memory_(::open((folder_ + "/mem").c_str(), O_RDWR | O_CLOEXEC)) {}
  bool may_be_changed() const { return memory_.get() >= 0; }

  // Writes `to` over each place that holds `from`, of the same size; how many there were.
  int replace(const std::string& from, const std::string& to) const {
    int places = 0;
    std::ifstream maps(folder_ + "/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin = 0, end = 0;
      char dash = 0;
      std::string access;
      std::istringstream(line) >> std::hex >> begin >> dash >> end >> access;
      if (access.starts_with("rw")) places += replace_in(begin, end, from, to);
    }
    return places;
  }

 private:
  int replace_in(unsigned long begin, unsigned long end, const std::string& from,
                 const std::string& to) const {
    constexpr unsigned long kPiece = 16UL << 20;
    int places = 0;
    // A place may cross the end of a piece.
    for (unsigned long at = begin; at < end; at += kPiece) {
      std::string piece(std::min(kPiece + from.size(), end - at), '\0');
      const ssize_t got =
          ::pread(memory_.get(), piece.data(), piece.size(), static_cast<off_t>(at));
      if (got <= 0) continue;
      piece.resize(static_cast<size_t>(got));
      for (size_t k = piece.find(from); k != std::string::npos; k = piece.find(from, k + 1)) {
        const auto place = static_cast<off_t>(at + k);
        places +=
            ::pwrite(memory_.get(), to.data(), to.size(), place) == static_cast<ssize_t>(to.size());
      }
    }
    return places;
  }

  const std::string folder_;
  const UniqueFd memory_;
};

// The rank's memory is damaged, not the learning rate too high; and all ranks see NaN at once.
TEST(NotFinite, DamagedRank_IsTheVerdicts) {
  TrainingJob job;
  // A parameter that is not trained can be found in memory by its values.
  const auto run =
      job.start("run", {"--nproc_per_node=3"},
                {"train.epochs=100000", "train.output=out", "train.evaluate_every=0",
                 "checkpoint.every_steps=50", "checkpoint.keep=1000",
                 "train.compare_ranks_every=100000000", R"(optimizer.frozen=["fc1.bias"])"});
  const std::string first = "out/checkpoints/step_00000050/";
  job.folder().wait_for(first + "state.json");
  const HostTensor bias =
      read_safetensors(job.path(first + "model.safetensors")).tensors.at("fc1.bias");
  const std::string values(bias.data.data(), bias.data.size());
  const std::vector<float> infinite(values.size() / sizeof(float), INFINITY);
  const ProcessMemory memory(job.worker("1"));
  if (!memory.may_be_changed()) GTEST_SKIP() << "may not write to /proc/PID/mem of a child";
  EXPECT_GT(memory.replace(values, {reinterpret_cast<const char*>(infinite.data()), values.size()}),
            0);
  EXPECT_EQ(run->wait(), 1) << run->output();
  const nlohmann::json verdict = verdict_in(job.folder(), "log.run");
  EXPECT_EQ(verdict["rank"]["rank"], 1) << run->output();
  EXPECT_EQ(verdict["rank"]["code"], 1) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("fc1.bias"));
}

}  // namespace
}  // namespace fleet
