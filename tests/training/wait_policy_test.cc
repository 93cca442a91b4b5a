// How the threads of a rank wait for each other: OpenMP reads it from the environment of a process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

// GOMP_SPINCOUNT of a fleet-worker that trains, started with these variables; "": not set.
std::string spin_count(const TrainingJob& job, const std::string& variables) {
  const std::string script =
      "cd '" + job.folder().path() + "' && rm -rf out environ && unset GOMP_SPINCOUNT\n" +
      job.folder().marked_environment() + " " + variables + " '" + program_folder() +
      "/fleet-worker' job.json --set train.output=out --set train.epochs=1000 >log 2>&1 & p=$!\n"
      "for i in $(seq 3000); do [ -e out/metrics.jsonl ] && break; sleep 0.01; done\n"
      "cp /proc/$p/environ environ; kill $p; wait $p; exit 0";
  EXPECT_EQ(std::system(script.c_str()), 0);
  std::ifstream file(job.path("environ"));
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(std::filesystem::exists(job.path("out/metrics.jsonl"))) << variables;
  const std::string name = std::string(1, '\0') + "GOMP_SPINCOUNT=";
  const size_t at = (std::string(1, '\0') + all).find(name);
  return at == std::string::npos ? "" : all.substr(at + name.size() - 1).c_str();
}

TEST(WaitPolicy, ThreadsOfARank_SpinBriefly) {
  const TrainingJob job;
  EXPECT_EQ(spin_count(job, "OMP_NUM_THREADS=2"), "30000");
}

TEST(WaitPolicy, ChoiceOfTheUser_Stays) {
  const TrainingJob job;
  EXPECT_EQ(spin_count(job, "OMP_NUM_THREADS=2 GOMP_SPINCOUNT=7"), "7");
  EXPECT_EQ(spin_count(job, "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=active"), "");
}

}  // namespace
}  // namespace fleet
