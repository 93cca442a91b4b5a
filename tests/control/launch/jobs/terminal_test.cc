// Jobs of a terminal: Ctrl-Z, fg, and ranks that ask a question there.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kScreenDeadlineMs = 60'000;  // generous: only against hanging

// A shell with job control on a terminal of its own, which runs a fleetrun in the foreground.
class Shell {
 public:
  Shell(const JobFolder& job, std::vector<std::string> words) : job_(job) {
    words.insert(words.begin(), program_folder() + "/fleetrun");
    controller_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_EQ(::grantpt(controller_.get()) + ::unlockpt(controller_.get()), 0);
    const std::string terminal = ::ptsname(controller_.get());
    int states[2], orders[2];
    EXPECT_EQ(::pipe2(states, O_CLOEXEC) + ::pipe2(orders, O_CLOEXEC), 0);
    states_ = UniqueFd(states[0]);
    orders_ = UniqueFd(orders[1]);
    const UniqueFd told(states[1]), ordered(orders[0]);
    pid_ = ::fork();
    if (pid_ == 0) run(terminal, words, told.get(), ordered.get());
  }
  ~Shell() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void type(char key) { EXPECT_EQ(::write(controller_.get(), &key, 1), 1); }
  // The next state of the fleetrun, stopped or ended, as of waitpid().
  int next_state() {
    int status = 0;
    pollfd readable = {states_.get(), POLLIN, 0};
    const bool told = ::poll(&readable, 1, kScreenDeadlineMs) == 1 &&
                      ::read(states_.get(), &status, sizeof status) == sizeof status;
    EXPECT_TRUE(told) << output();
    return told ? status : 0;
  }
  void foreground() { EXPECT_EQ(::write(orders_.get(), "f", 1), 1); }
  std::string output() const { return job_.read("shell.out"); }

 private:
  [[noreturn]] void run(const std::string& terminal, const std::vector<std::string>& words,
                        int told, int ordered) {
    ::setsid();
    const int tty = ::open(terminal.c_str(), O_RDWR);  // it becomes the session's
    ::signal(SIGTTOU, SIG_IGN);
    const pid_t child = ::fork();
    if (child == 0) execute(tty, words);
    for (int status = 0; ::waitpid(child, &status, WUNTRACED) == child;) {
      if (::write(told, &status, sizeof status) != sizeof status) break;
      if (!WIFSTOPPED(status)) break;
      char order;
      if (::read(ordered, &order, 1) != 1) break;
      ::tcsetpgrp(tty, child);
      ::kill(-child, SIGCONT);
    }
    ::_exit(0);
  }

  [[noreturn]] void execute(int tty, const std::vector<std::string>& words) {
    ::setpgid(0, 0);
    ::tcsetpgrp(tty, ::getpid());
    ::signal(SIGTTOU, SIG_DFL);
    if (::chdir(job_.path().c_str()) != 0) ::_exit(127);
    const int output = ::open("shell.out", O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(tty, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    const std::string mark = job_.marked_environment();
    const size_t equals = mark.find('=');
    ::setenv(mark.substr(0, equals).c_str(), mark.substr(equals + 1).c_str(), 1);
    ::setenv("FLEET_RUNTIME_DIR", (job_.path() + "/run").c_str(), 1);
    ::setenv("FLEETD_SECRET", "a secret of these tests", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    ::execv(words[0].c_str(), pointers_to(words).data());
    ::_exit(127);
  }

  const JobFolder& job_;
  UniqueFd controller_, states_, orders_;
  pid_t pid_ = -1;
};

constexpr char kCtrlC = 3, kCtrlZ = 26;
const std::string kScript =
    "echo $$ >pid.$RANK; : >ready.$RANK; while [ ! -e end ]; do sleep 0.01; done";

struct TerminalJob : ::testing::Test {
  pid_t rank_pid(int rank) {
    long long pid = 0;
    EXPECT_TRUE(parse_int(trim(job.read("pid." + std::to_string(rank))), &pid));
    return static_cast<pid_t>(pid);
  }
  void wait_for_state(pid_t pid, bool stopped) {
    for (int i = 0; i < kScreenDeadlineMs && (process_state(pid) == 'T') != stopped; ++i) {
      ::poll(nullptr, 0, 1);
    }
    EXPECT_EQ(process_state(pid) == 'T', stopped);
  }
  void wait_for_output(const Shell& shell, const std::string& text) {
    for (int i = 0; i < kScreenDeadlineMs && shell.output().find(text) == std::string::npos; ++i) {
      ::poll(nullptr, 0, 1);
    }
    EXPECT_THAT(shell.output(), HasSubstr(text));
  }
  void end() { write_file_atomically(job.path() + "/end", ""); }
  JobFolder job;
};

TEST_F(TerminalJob, CtrlZ_StopsLauncherAndRanksUntilFg) {
  // Without processes of its own: a shell whose child is stopped before its exec() does not stop.
  const std::string script =
      "mkfifo end.$RANK; echo $$ >pid.$RANK; : >ready.$RANK; read line <end.$RANK";
  Shell shell(job, {"--nproc_per_node=2", "sh", "-c", script});
  for (const char* file : {"ready.0", "ready.1"}) job.wait_for(file);
  for (int round = 0; round < 2; ++round) {
    shell.type(kCtrlZ);
    EXPECT_TRUE(WIFSTOPPED(shell.next_state())) << shell.output();
    for (const int rank : {0, 1}) wait_for_state(rank_pid(rank), true);
    shell.foreground();
    for (const int rank : {0, 1}) wait_for_state(rank_pid(rank), false);
  }
  for (const char* pipe : {"/end.0", "/end.1"}) std::ofstream(job.path() + pipe) << "\n";
  const int status = shell.next_state();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shell.output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TerminalJob, CtrlZOnSeveralNodes_IsRefusedWithALine) {
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  const auto node = [&](const std::string& number) {
    return std::vector<std::string>{"--ips=127.0.0.1,127.0.0.2",
                                    "--host=127.0.0." + number,
                                    "--nproc_per_node=1",
                                    "--log_dir=log" + number,
                                    "--rdzv_port=" + std::to_string(rendezvous.port()),
                                    "sh",
                                    "-c",
                                    kScript};
  };
  Fleetrun first(job, "first", node("1"));
  Shell second(job, node("2"));
  for (const char* file : {"ready.0", "ready.1"}) job.wait_for(file);
  second.type(kCtrlZ);
  wait_for_output(second, "Ctrl-Z");
  end();
  EXPECT_EQ(first.wait(), 0) << first.output();
  EXPECT_TRUE(WIFEXITED(second.next_state())) << second.output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// git, ssh and getpass ask this way, often only on the first run.
TEST_F(TerminalJob, RankThatReadsTheTerminal_IsNamedAtOnce) {
  Shell shell(job, {"--nproc_per_node=1", "sh", "-c", "read answer </dev/tty"});
  wait_for_output(shell, "SIGTTIN");
  EXPECT_THAT(shell.output(), AllOf(HasSubstr("rank 0"), HasSubstr("/dev/tty")));
  shell.type(kCtrlC);
  const int status = shell.next_state();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT) << shell.output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

}  // namespace
}  // namespace fleet
