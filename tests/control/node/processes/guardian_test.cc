#include "node/guardian.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/file.h"
#include "base/small_file.h"
#include "base/text.h"
#include "node/channel.h"
#include "node/proc_view.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Generous: only against hanging.
constexpr int kDeadlineMs = 30'000;

// Drives a guardian over its socket, blocking.
struct GuardianTest : ::testing::Test {
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fleet_guardian.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    start();
  }
  void start() {
    sigset_t mask;
    ::sigemptyset(&mask);
    guardian = start_guardian(mask);
  }
  // A guardian whose standard output is `output`.
  void restart_with(int output) {
    guardian.socket.reset();
    guardian.alive.reset();
    ::waitpid(guardian.pid, nullptr, 0);
    const UniqueFd before(::dup(STDOUT_FILENO));
    ::dup2(output, STDOUT_FILENO);
    start();
    ::dup2(before.get(), STDOUT_FILENO);
  }
  void TearDown() override {
    guardian.socket.reset();  // as if this launcher had died
    guardian.alive.reset();   // its watchdog ends too, even if the guardian could not end it
    if (guardian.pid > 0) ::waitpid(guardian.pid, nullptr, 0);
    while (has_descendants({})) ::waitpid(-1, nullptr, 0);
    std::filesystem::remove_all(folder);
  }

  void send(const wire::GuardianCommand& command) {
    const std::string bytes = frame(command);
    ASSERT_EQ(::send(guardian.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void spawn(const std::vector<wire::RankCommand>& ranks,
             const wire::GuardianSettings& settings = {}) {
    wire::GuardianCommand command;
    *command.mutable_spawn()->mutable_settings() = settings;
    command.mutable_spawn()->mutable_ranks()->Add(ranks.begin(), ranks.end());
    send(command);
  }
  void stop(int signal, int grace_ms) {
    wire::GuardianCommand command;
    command.mutable_stop()->set_signal(signal);
    command.mutable_stop()->set_grace_ms(grace_ms);
    send(command);
  }
  void kill() {
    wire::GuardianCommand command;
    command.mutable_kill();
    send(command);
  }
  // The next event, of this kind; fails at the end of the socket.
  wire::GuardianEvent expect(wire::GuardianEvent::KindCase kind) {
    wire::GuardianEvent event;
    while (!take_frame(incoming, &event)) {
      char buffer[4096];
      pollfd readable = {guardian.socket.get(), POLLIN, 0};
      const ssize_t n = ::poll(&readable, 1, kDeadlineMs) == 1
                            ? ::read(guardian.socket.get(), buffer, sizeof buffer)
                            : -1;
      if (n <= 0) {
        ADD_FAILURE() << "the guardian says nothing more";
        return event;
      }
      incoming.append(buffer, static_cast<size_t>(n));
    }
    EXPECT_EQ(event.kind_case(), kind);
    return event;
  }
  wire::RankStarted expect_started() { return expect(wire::GuardianEvent::kStarted).started(); }
  wire::RankExit expect_ended() { return expect(wire::GuardianEvent::kEnded).ended(); }
  wire::AllGone expect_all_gone() { return expect(wire::GuardianEvent::kAllGone).all_gone(); }

  wire::RankCommand script(int local_rank, const std::string& text) {
    wire::RankCommand rank;
    rank.set_local_rank(local_rank);
    for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), text}) {
      rank.add_argv(word);
    }
    rank.set_log_path(folder + "/workerlog." + std::to_string(local_rank));
    return rank;
  }
  // Waits for a file that a rank makes. A file with content is renamed into place (write_pid), or
  // it may be read before it is written.
  void wait_for(const std::string& path) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
    while (!std::filesystem::exists(path) && std::chrono::steady_clock::now() < deadline) {
      ::poll(nullptr, 0, 5);
    }
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
  }
  pid_t pid_in(const std::string& path) {
    wait_for(path);
    long long pid = 0;
    EXPECT_TRUE(parse_int(trim(read_file(path)), &pid));
    return static_cast<pid_t>(pid);
  }

  std::string folder, incoming;
  GuardianProcess guardian;
};

// A command of a shell that writes its pid.
std::string write_pid(const std::string& path) {
  return "echo $$ >" + path + ".tmp; mv " + path + ".tmp " + path;
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

TEST_F(GuardianTest, Ping_IsAnsweredWithoutRanksAndWithThem) {
  send(envelope(&wire::GuardianCommand::mutable_ping));
  expect(wire::GuardianEvent::kPong);
  spawn({script(0, "exec sleep 600")});
  expect_started();
  send(envelope(&wire::GuardianCommand::mutable_ping));
  expect(wire::GuardianEvent::kPong);
  kill();
}

// People find it with pgrep -f and signal it.
TEST_F(GuardianTest, SignalsOfUsers_ArePassedOn) {
  spawn({script(0, "exec sleep 600")});
  expect_started();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::kill(guardian.pid, signal);
    const auto received = expect(wire::GuardianEvent::kSignal).signal();
    EXPECT_EQ(received.signal(), signal);
    EXPECT_FALSE(received.by_watchdog());
  }
  kill();
}

TEST_F(GuardianTest, SignalsToItsWatchdog_ArePassedOn) {
  spawn({script(0, "exec sleep 600")});
  expect_started();
  pid_t watchdog = -1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
  while (watchdog < 0 && std::chrono::steady_clock::now() < deadline) {
    const std::vector<std::vector<pid_t>> trees = process_trees({guardian.pid});
    for (const pid_t pid : trees[0]) {
      const std::string name = small_file(proc_folder(pid) + "/comm");
      if (name == "fleet-watchdog") watchdog = pid;
    }
  }
  ASSERT_GT(watchdog, 0);
  for (const int signal : {SIGTERM, SIGUSR1}) {
    ::kill(watchdog, signal);
    const auto received = expect(wire::GuardianEvent::kSignal).signal();
    EXPECT_EQ(received.signal(), signal);
    EXPECT_TRUE(received.by_watchdog());
  }
  kill();
}

// As the kernel does with a rank that reads the terminal.
TEST_F(GuardianTest, RankThatTheTerminalStops_IsReported) {
  spawn({script(0, "exec sleep 600"), script(1, "kill -s TTIN $$; exec sleep 600")});
  expect_started();
  expect_started();
  const auto stopped = expect(wire::GuardianEvent::kStopped).stopped();
  EXPECT_EQ(stopped.local_rank(), 1);
  EXPECT_EQ(stopped.signal(), SIGTTIN);
  kill();
}

TEST_F(GuardianTest, Suspend_StopsEveryProcessUntilResume) {
  spawn({script(0, "setsid sh -c '" + write_pid(folder + "/daemon") + "; exec sleep 600' & " +
                       write_pid(folder + "/rank") + "; exec sleep 600")});
  expect_started();
  const pid_t rank = pid_in(folder + "/rank"), daemon = pid_in(folder + "/daemon");
  const auto wait_for_state = [&](pid_t pid, bool stopped) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
    while ((process_state(pid) == 'T') != stopped && std::chrono::steady_clock::now() < deadline) {
      ::poll(nullptr, 0, 1);
    }
    EXPECT_EQ(process_state(pid) == 'T', stopped) << pid;
  };
  send(envelope(&wire::GuardianCommand::mutable_suspend));
  expect(wire::GuardianEvent::kSuspended);
  for (const pid_t pid : {rank, daemon}) wait_for_state(pid, true);
  send(envelope(&wire::GuardianCommand::mutable_resume));
  for (const pid_t pid : {rank, daemon}) wait_for_state(pid, false);
  kill();
}

// The launcher may be killed while it is suspended.
TEST_F(GuardianTest, LauncherLostWhileSuspended_TheRanksAreKilled) {
  spawn({script(0, write_pid(folder + "/rank") + "; exec sleep 600")});
  expect_started();
  const pid_t rank = pid_in(folder + "/rank");
  send(envelope(&wire::GuardianCommand::mutable_suspend));
  expect(wire::GuardianEvent::kSuspended);
  guardian.socket.reset();
  guardian.alive.reset();
  ::waitpid(std::exchange(guardian.pid, -1), nullptr, 0);
  EXPECT_FALSE(exists(rank));
}

TEST_F(GuardianTest, HangTimeout_ReportsTheRankThatExpectsProgress) {
  wire::RankCommand silent = script(0, "exec sleep 600"), exempt = script(1, "exec sleep 600");
  silent.set_expects_progress(true);
  wire::GuardianSettings settings;
  settings.set_hang_timeout_ms(200);
  spawn({silent, exempt}, settings);
  expect_started();
  expect_started();
  const wire::RankStall stall = expect(wire::GuardianEvent::kStalled).stalled();
  EXPECT_EQ(stall.local_rank(), 0);
  EXPECT_GE(stall.quiet_for_ms(), 200);
  kill();
}

TEST_F(GuardianTest, RanksThatEnd_AreReportedWithTheirLastLines) {
  spawn({script(0, "echo fine"), script(1, "echo 'it broke' >&2; exit 7")});
  EXPECT_EQ(expect_started().error(), "");
  EXPECT_EQ(expect_started().error(), "");
  wire::RankExit ended[2];
  for (int i = 0; i < 2; ++i) {
    const wire::RankExit one = expect_ended();
    ended[one.local_rank()] = one;
  }
  EXPECT_EQ(ended[0].code(), 0);
  EXPECT_EQ(ended[1].code(), 7);
  EXPECT_EQ(ended[1].tail(), "it broke");
  EXPECT_EQ(expect_all_gone().stuck(), "");
  EXPECT_EQ(read_file(folder + "/workerlog.0"), "fine\n");
}

TEST_F(GuardianTest, LogFile_IsAppendedTo) {
  write_file_atomically(folder + "/workerlog.0", "before\n");
  spawn({script(0, "echo after")});
  expect_started();
  expect_ended();
  expect_all_gone();
  EXPECT_EQ(read_file(folder + "/workerlog.0"), "before\nafter\n");
}

TEST_F(GuardianTest, MuchOutput_IsAllInTheLog) {
  spawn({script(0, "seq 1 300000")});
  expect_started();
  expect_ended();
  expect_all_gone();
  const std::string log = read_file(folder + "/workerlog.0");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 300000);
  EXPECT_TRUE(log.ends_with("\n300000\n"));
}

TEST_F(GuardianTest, RankKilledBySignal_IsReportedAsThat) {
  spawn({script(0, "kill -SEGV $$")});
  expect_started();
  EXPECT_EQ(expect_ended().signal(), SIGSEGV);
  expect_all_gone();
}

TEST_F(GuardianTest, ProgramThatCannotBeRun_IsReported) {
  wire::RankCommand rank = script(0, "");
  rank.set_argv(0, "/no/such/program");
  spawn({rank});
  EXPECT_THAT(expect_started().error(), HasSubstr("/no/such/program"));
  expect_all_gone();
}

TEST_F(GuardianTest, DescriptorsRunOut_RankIsReported) {
  const rlimit few{50, 50};
  ASSERT_EQ(::prlimit(guardian.pid, RLIMIT_NOFILE, &few, nullptr), 0);
  std::vector<wire::RankCommand> ranks;
  for (int i = 0; i < 40; ++i) ranks.push_back(script(i, "sleep 1000"));
  spawn(ranks);
  int started = 0;
  std::string error;
  for (int i = 0; i < 40; ++i) {
    const wire::RankStarted one = expect_started();
    started += one.error().empty();
    if (!one.error().empty()) error = one.error();
  }
  EXPECT_GT(started, 0);
  EXPECT_THAT(error, HasSubstr("Too many open files"));
  kill();
  for (int i = 0; i < started; ++i) EXPECT_EQ(expect_ended().signal(), SIGKILL);
  expect_all_gone();
}

// The guardian's own limit is as high as it may be: it has some of each rank.
TEST_F(GuardianTest, RanksKeepTheirLimitOfDescriptors) {
  rlimit own;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  spawn({script(0, "ulimit -Sn")});
  expect_started();
  EXPECT_EQ(expect_ended().tail(), std::to_string(own.rlim_cur));
  rlimit guardians;
  ASSERT_EQ(::prlimit(guardian.pid, RLIMIT_NOFILE, nullptr, &guardians), 0);
  EXPECT_EQ(guardians.rlim_cur, own.rlim_max);
  expect_all_gone();
}

// It does not take the grace time: there is nobody to have it.
TEST_F(GuardianTest, StopBeforeTheStart_IsSoonOver) {
  stop(SIGTERM, 1000 * kDeadlineMs);
  expect_all_gone();
  spawn({script(0, "exit 3")});  // nor does it spoil what comes then
  expect_started();
  EXPECT_EQ(expect_ended().code(), 3);
  expect_all_gone();
}

TEST_F(GuardianTest, Stop_LetsRanksEndByThemselves) {
  spawn({script(
      0, "trap 'echo saved; exit 3' TERM; : >" + folder + "/ready; while :; do sleep 0.01; done")});
  expect_started();
  wait_for(folder + "/ready");
  stop(SIGTERM, kDeadlineMs);
  const wire::RankExit ended = expect_ended();
  EXPECT_EQ(ended.code(), 3);
  EXPECT_THAT(ended.tail(), EndsWith("saved"));
  expect_all_gone();
}

TEST_F(GuardianTest, StubbornRank_IsKilledAfterTheGraceTime) {
  spawn({script(0, "trap '' TERM; : >" + folder + "/ready; while :; do sleep 0.01; done")});
  expect_started();
  wait_for(folder + "/ready");
  stop(SIGTERM, 50);
  EXPECT_EQ(expect_ended().signal(), SIGKILL);
  expect_all_gone();
}

TEST_F(GuardianTest, StoppedRank_IsKilledToo) {
  spawn({script(0, ": >" + folder + "/ready; kill -STOP $$")});
  expect_started();
  wait_for(folder + "/ready");
  kill();
  EXPECT_EQ(expect_ended().signal(), SIGKILL);
  expect_all_gone();
}

TEST_F(GuardianTest, DaemonisedChild_DoesNotOutliveTheJob) {
  spawn({script(0, "setsid sh -c '" + write_pid(folder + "/daemon") +
                       "; trap \"\" TERM HUP; while :; do sleep 1; done' "
                       ">/dev/null 2>&1 & while ! test -e " +
                       folder + "/daemon; do sleep 0.01; done")});
  expect_started();
  EXPECT_EQ(expect_ended().code(), 0);
  expect_all_gone();
  EXPECT_FALSE(exists(pid_in(folder + "/daemon")));
}

TEST_F(GuardianTest, ConsoleThatNobodyReads_KeepsNothingFromEnding) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const UniqueFd reading(pipe[0]);
  UniqueFd writing(pipe[1]);
  restart_with(writing.get());
  writing.reset();
  wire::RankCommand rank = script(0, "yes");
  rank.set_shown_streams(3);
  wire::RankCommand other =
      script(1, "yes | head -c 9000000; : >" + folder + "/ready; exec sleep 1000");
  spawn({rank, other});
  expect_started();
  expect_started();
  wait_for(folder + "/ready");  // the other rank's output is not held up
  kill();
  expect_ended();
  expect_ended();
  expect_all_gone();
}

TEST_F(GuardianTest, SlowConsole_GetsEverythingInOrder) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const UniqueFd reading(pipe[0]);
  UniqueFd writing(pipe[1]);
  restart_with(writing.get());
  writing.reset();
  wire::RankCommand rank = script(0, "seq 1 400000");
  rank.set_shown_streams(3);
  spawn({rank});
  std::string output;
  char buffer[1000];
  for (ssize_t n; !output.ends_with("\n400000\n");) {
    ASSERT_GT(n = ::read(reading.get(), buffer, sizeof buffer), 0);
    output.append(buffer, static_cast<size_t>(n));
  }
  expect_started();
  expect_ended();  // its log may be behind the console until then
  // Not EXPECT_EQ, whose account of a difference takes memory quadratic in the lines.
  EXPECT_TRUE(output == read_file(folder + "/workerlog.0"));
}

TEST_F(GuardianTest, StartedAgain_AfterEverythingIsGone) {
  for (const char* turn : {"1", "2", "3"}) {
    const std::string ready = folder + "/ready" + turn;  // it ignores SIGTERM from then on
    spawn({script(0, "until [ -e " + ready + " ]; do sleep 0.01; done; echo turn " + turn +
                         "; sleep 1000 & exit " + turn),
           script(1, "trap '' TERM; : >" + ready + "; while :; do sleep 0.01; done")});
    expect_started();
    expect_started();
    const auto ended = expect_ended();
    EXPECT_EQ(std::to_string(ended.code()), turn);
    EXPECT_EQ(ended.tail(), std::string("turn ") + turn);  // not those of the turns before
    stop(SIGTERM, 20);
    EXPECT_EQ(expect_ended().signal(), SIGKILL);
    EXPECT_EQ(expect_all_gone().stuck(), "");
  }
  EXPECT_EQ(read_file(folder + "/workerlog.0"), "turn 3\n");
  EXPECT_EQ(read_file(folder + "/workerlog.0.1"), "turn 1\n");
}

// The launcher learns of the failure after everything is gone, and stops the ranks all the same.
TEST_F(GuardianTest, StopAfterEverythingIsGone_SparesTheNextStart) {
  spawn({script(0, "exit 1")});
  expect_started();
  EXPECT_EQ(expect_ended().code(), 1);
  expect_all_gone();
  stop(SIGTERM, 50);
  spawn({script(0, "sleep 0.3; exit 3")});
  expect_started();
  EXPECT_EQ(expect_ended().code(), 3);
  expect_all_gone();
}

TEST_F(GuardianTest, StartedAgainWhileRanksRun_IsRefused) {
  spawn({script(0, "sleep 1000")});
  expect_started();
  spawn({script(0, "exit 9")});
  kill();
  EXPECT_EQ(expect_ended().signal(), SIGKILL);
  expect_all_gone();
}

TEST_F(GuardianTest, LauncherDies_EverythingIsKilled) {
  spawn({script(0, "setsid sh -c '" + write_pid(folder + "/daemon") +
                       "; while :; do sleep 1; done' & sleep 1000")});
  const pid_t rank = expect_started().pid();
  const pid_t daemon = pid_in(folder + "/daemon");
  guardian.socket.reset();
  ::waitpid(guardian.pid, nullptr, 0);
  guardian.pid = -1;
  EXPECT_FALSE(exists(rank));
  EXPECT_FALSE(exists(daemon));
}

TEST_F(GuardianTest, GuardianDies_ItsRanksDieAndOrphansBecomeOurs) {
  spawn({script(0, "setsid sh -c '" + write_pid(folder + "/daemon") +
                       "; while :; do sleep 1; done' & sleep 1000")});
  const pid_t rank = expect_started().pid();
  const pid_t daemon = pid_in(folder + "/daemon");
  ::kill(guardian.pid, SIGKILL);
  ::waitpid(guardian.pid, nullptr, 0);
  guardian.pid = -1;
  // The rank is ours now, and dies of its parent-death signal.
  int status = 0;
  ASSERT_EQ(::waitpid(rank, &status, 0), rank);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_THAT(descendants({}), ::testing::Contains(daemon));
  for (const pid_t pid : descendants({})) ::kill(pid, SIGKILL);
}

}  // namespace
}  // namespace fleet
