// How the threads of a rank wait for each other: OpenMP reads it from the environment of a process.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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

// How often fleet-worker, with these words behind job.json, executes a program; -1: it may not be
// traced here. A tracer is told.
int executions(const TrainingJob& job, const std::vector<std::string>& more) {
  std::vector<std::string> words = {program_folder() + "/fleet-worker", "job.json"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool traced = ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 &&
                        ::chdir(job.folder().path().c_str()) == 0;
    ::setenv("OMP_NUM_THREADS", "2", 1);
    ::unsetenv("GOMP_SPINCOUNT");
    ::unsetenv("OMP_WAIT_POLICY");
    if (traced) {
      ::raise(SIGSTOP);
      ::execv(arguments[0], arguments.data());
    }
    ::_exit(127);
  }
  int status = 0, count = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return -1;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  while (WIFSTOPPED(status)) {
    const bool executes = status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
    count += executes;
    const bool first = WSTOPSIG(status) == SIGSTOP;
    const long signal = executes || first ? 0 : WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, child, nullptr, signal);
    if (::waitpid(child, &status, 0) != child) break;
  }
  return count;
}

TEST(WaitPolicy, CommandsThatTrainNothing_StartOnce) {
  const TrainingJob job;
  const int training = executions(job, {"--set", "train.max_steps=1"});
  if (training < 0) GTEST_SKIP() << "processes may not be traced here (ptrace)";
  EXPECT_EQ(training, 2);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--check"},
                                             {"--print_config"},
                                             {"--print_keys"},
                                             {"--print_program"},
                                             {"--save_strategy", job.path("strategy.prototxt")}}) {
    EXPECT_EQ(executions(job, words), 1) << words[0];
  }
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
