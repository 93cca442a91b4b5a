// Jobs that were started without a fleetd: ls, status, logs, attach and stop while they run and
// after their end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/table_rows.h"
#include "tests/test_terminal.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

struct LocalJobs : ::testing::Test {
  ~LocalJobs() override {
    running.clear();
    EXPECT_THAT(job.survivors(30), IsEmpty());
  }
  // Two ranks that run this script; to its end.
  int run(const std::string& id, const std::string& script, std::vector<std::string> options = {}) {
    return start(id, script, std::move(options)).wait();
  }
  Fleetrun& start(const std::string& id, const std::string& script,
                  std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"--nproc_per_node=2", "--job_id=" + id});
    options.insert(options.end(), {"sh", "-c", script});
    running.push_back(
        std::make_unique<Fleetrun>(job, "run" + std::to_string(running.size()), options));
    return *running.back();
  }
  // Until both its ranks have made their file, they run until there is one called `end`.
  Fleetrun& start_waiting(const std::string& id, std::vector<std::string> options = {}) {
    const std::string ready = "ready" + std::to_string(running.size()) + ".";
    Fleetrun& started = start(id,
                              "trap 'echo saved; exit 0' TERM; echo hello from $RANK; : >" + ready +
                                  "$RANK; while [ ! -e end ]; do sleep 0.01; done",
                              std::move(options));
    for (const char* rank : {"0", "1"}) job.wait_for(ready + rank);
    return started;
  }
  std::string run_command(std::vector<std::string> words, int code = 0) {
    words.push_back("--fleetd_port=" + port);
    return run_local(std::move(words), code);
  }
  // A command that asks no fleetd.
  std::string run_local(std::vector<std::string> words, int code = 0) {
    Fleetrun command(job, "command" + std::to_string(++commands), words);
    EXPECT_EQ(command.wait(), code) << words[0] << ": " << command.output();
    return command.output();
  }
  // Its row of `ls`; empty if it has none.
  TableRow listed(const std::string& name) {
    for (const TableRow& row : table_rows(run_command({"ls"}))) {
      if (row.at("JOB") == name) return row;
    }
    return {};
  }
  void wait_for_state(const std::string& name, const std::string& state) {
    while (listed(name)["STATE"] != state) ::poll(nullptr, 0, 5);
  }
  std::string state(const std::string& name) {
    return nlohmann::json::parse(run_command({"status", name, "--format=json"})).at(0).at("state");
  }
  std::vector<std::string> files(const std::string& ending) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(job.path() + "/run")) {
      if (entry.path().string().ends_with(ending)) found.push_back(entry.path().filename());
    }
    return found;
  }
  JobFolder job;
  const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
  std::vector<std::unique_ptr<Fleetrun>> running;
  int commands = 0;
};

TEST_F(LocalJobs, Running_AreListedFollowedAndStopped) {
  Fleetrun& fleetrun = start_waiting("mine");
  wait_for_state("mine", "running");
  TableRow row = listed("mine");
  EXPECT_EQ(row["NODES"], "1");
  EXPECT_EQ(row["RANKS"], "2");
  EXPECT_EQ(row["LOGS"], job.path() + "/log");
  EXPECT_EQ(row["PID"], std::to_string(fleetrun.pid()));
  EXPECT_EQ(run_command({"logs", "mine", "--rank=1"}), "hello from 1\n");
  EXPECT_EQ(run_command({"logs", "mine"}), "hello from 0\n");
  EXPECT_EQ(run_command({"stop", "mine"}), "job mine has ended\n");
  EXPECT_EQ(fleetrun.wait(), 143);
  EXPECT_EQ(state("mine"), "stopped (SIGTERM)");
  EXPECT_THAT(run_command({"logs", "mine"}), EndsWith("saved\n"));
  run_command({"stop", "mine"});  // nothing to do
}

TEST_F(LocalJobs, LogThatIsRotated_IsFollowed) {
  Fleetrun& fleetrun =
      start("mine",
            ": >ready; while [ ! -e go ]; do sleep 0.01; done; i=0; while [ $i -lt 20000 ]; do "
            "echo line $i; i=$((i+1)); done; while [ ! -e end ]; do sleep 0.01; done",
            {"--log_max_size=64K"});
  job.wait_for("ready");
  Fleetrun follower(job, "follower", {"logs", "mine", "-f", "--rank=0", "--fleetd_port=" + port});
  write_file_atomically(job.path() + "/go", "");
  while (follower.output().find("line 19999\n") == std::string::npos) ::poll(nullptr, 0, 5);
  write_file_atomically(job.path() + "/end", "");
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_EQ(follower.wait(), 0);
  const std::string seen = follower.output();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 20000);
}

TEST_F(LocalJobs, LogOnATerminal_CommandsItNot) {
  EXPECT_EQ(run("strange", "printf '\\033]0;title\\007\\033[2Jtext\\n'"), 0);
  EXPECT_THAT(run_command({"logs", "strange"}),
              HasSubstr("\033]0;title\007"));  // a copy, in a file
  const int controller = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  ASSERT_GE(controller, 0);
  ASSERT_EQ(::grantpt(controller) + ::unlockpt(controller), 0);
  const std::string terminal = ::ptsname(controller);
  const int kept = ::open(terminal.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);  // or it is hung up
  Fleetrun logs(job, "shown", {"logs", "strange", "--fleetd_port=" + port}, {}, terminal);
  EXPECT_EQ(logs.wait(), 0) << logs.output();
  char shown[256];
  const ssize_t size = ::read(controller, shown, sizeof shown);
  ::close(kept);
  ::close(controller);
  EXPECT_EQ(std::string(shown, static_cast<size_t>(std::max<ssize_t>(size, 0))), "text\r\n");
}

TEST_F(LocalJobs, ListOnATerminal_FitsAndHonoursNoColor) {
  EXPECT_EQ(run(std::string(30, 'n'), "exit 3"), 3);
  for (const bool colors : {true, false}) {
    TestTerminal terminal;
    terminal.resize(40, 24);
    const UniqueFd kept(::open(terminal.path().c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    Fleetrun ls(job, "listed" + std::to_string(++commands), {"ls", "--fleetd_port=" + port},
                {{"TERM", "xterm"}, {"FORCE_COLOR", ""}, {"NO_COLOR", colors ? "" : "1"}},
                terminal.path());
    EXPECT_EQ(ls.wait(), 0) << ls.output();
    ASSERT_TRUE(terminal.wait_for("exited")) << terminal.seen();
    EXPECT_EQ(terminal.seen().find('\x1b') != std::string::npos, colors);
    const std::string shown = resolve_output(terminal.seen());
    for (const std::string_view line : lines_of(shown)) EXPECT_LE(columns_of_text(line), 40u);
  }
}

TEST_F(LocalJobs, Ended_AreKnownWithVerdictAndLogs) {
  EXPECT_EQ(run("good", "echo fine", {"--log_dir=good"}), 0);
  EXPECT_EQ(run("bad",
                "echo out of $RANK; : >said.$RANK; test $RANK = 0 && sleep 1000; "
                "while [ ! -e said.0 ]; do sleep 0.01; done; exit 5",
                {"--log_dir=bad", "--log_split"}),
            5);
  EXPECT_EQ(state("good"), "succeeded");
  EXPECT_FALSE(listed("bad")["VERDICT"].empty());
  EXPECT_EQ(listed("good")["VERDICT"], "");
  const std::string pid = std::to_string(running[1]->pid());
  for (const std::string& name :
       {std::string("bad"), pid, std::string("bad/"), job.path() + "/bad"}) {
    EXPECT_EQ(state(name), "failed (5)");
    EXPECT_EQ(run_command({"logs", name, "--rank=1"}), "out of 1\n");
  }
  EXPECT_THAT(split(run_command({"attach", "bad"}, 5), '\n'), Contains("out of 0"));
  EXPECT_THAT(run_command({"attach", "good"}), "fine\n");
  run_command({"status", "none"}, 2);
  run_command({"logs", "good", "--rank=7"}, 2);
  const auto all = nlohmann::json::parse(run_command({"ls", "--format=json"}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1]["state"], "failed (5)");
  EXPECT_EQ(all[1]["exit_code"], 5);
  EXPECT_EQ(all[1]["verdict"]["rank"]["rank"], 1);
  EXPECT_THAT(files(".sock"), IsEmpty());
  EXPECT_THAT(files(".json"), IsEmpty());
}

TEST_F(LocalJobs, RunsOfOneName_AreDistinguished) {
  // Each rank waits for the other: a failure ends that one wherever it is.
  EXPECT_EQ(run("same",
                "echo first; : >said.$RANK; until test -e said.0 -a -e said.1; do sleep 0.01; "
                "done; exit 3"),
            3);
  EXPECT_EQ(run("same", "echo second"), 0);
  EXPECT_EQ(job.read("log/workerlog.0"), "first\nsecond\n");
  EXPECT_EQ(run_command({"logs", "same"}), "second\n");  // the newest
  EXPECT_EQ(run_command({"logs", "same", "--rank=1"}), "second\n");
  EXPECT_EQ(run_command({"logs", std::to_string(running[0]->pid())}), "first\n");
  EXPECT_THAT(split(run_command({"attach", std::to_string(running[0]->pid())}, 3), '\n'),
              Contains("first"));
  EXPECT_EQ(state(std::to_string(running[0]->pid())), "failed (3)");
  EXPECT_EQ(state("same"), "succeeded");
}

TEST_F(LocalJobs, SeveralOfOneNameThatRun_AreAskedFor) {
  EXPECT_EQ(run("same", "echo earlier"), 0);
  Fleetrun& one = start_waiting("same", {"--log_dir=one"});
  Fleetrun& two = start_waiting("same", {"--log_dir=two"});
  for (const char* command : {"status", "logs", "attach", "stop"}) {
    EXPECT_EQ(run_command({command, "same"}, 2),
              "fleetrun: job same: several jobs of this name run here, with pid " +
                  std::to_string(one.pid()) + " (logs in " + job.path() + "/one), " +
                  std::to_string(two.pid()) + " (logs in " + job.path() +
                  "/two); select one by its pid or its log folder\n");
  }
  const auto both_pids =
      AllOf(HasSubstr(std::to_string(one.pid())), HasSubstr(std::to_string(two.pid())));
  EXPECT_THAT(run_command({"top", "--once"}, 2), both_pids);
  for (const char* command : {"stacks", "trace"}) {
    EXPECT_THAT(run_local({command}, 2), both_pids);
    EXPECT_THAT(run_local({command, "same"}, 2), both_pids);
  }
  run_command({"stop", "one"});
  EXPECT_EQ(one.wait(), 143);
  EXPECT_EQ(state("same"), "running");  // the one that is left
  run_command({"stop", std::to_string(two.pid())});
  EXPECT_EQ(two.wait(), 143);
}

TEST_F(LocalJobs, Attach_ShowsPassesSignalsOnAndHasTheExitCode) {
  Fleetrun& fleetrun = start_waiting("mine", {"--ranks=all"});
  Fleetrun attached(job, "attached", {"attach", "mine", "--fleetd_port=" + port});
  while (attached.output().find("[rank 1] hello from 1\n") == std::string::npos) {
    ::poll(nullptr, 0, 5);
  }
  attached.signal(SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 143);
  EXPECT_EQ(attached.wait(), 143) << attached.output();
  EXPECT_THAT(split(attached.output(), '\n'), IsSupersetOf({"[rank 0] saved", "[rank 1] saved"}));
}

TEST_F(LocalJobs, ControlD_DetachesAndAProgramsSigintStops) {
  Fleetrun& fleetrun = start_waiting("mine");
  wait_for_state("mine", "running");
  TestTerminal terminal;
  const StandardInput input(terminal.path());
  const auto attach = [&](const std::string& name) {
    auto attached = std::make_unique<Fleetrun>(
        job, name, std::vector<std::string>{"attach", "mine", "--fleetd_port=" + port});
    while (attached->output().find("Ctrl-D") == std::string::npos) ::poll(nullptr, 0, 5);
    return attached;
  };
  const auto detached = attach("detached");
  terminal.type("ls\n");  // has no effect
  terminal.type("\x04");
  EXPECT_EQ(detached->wait(), 0) << detached->output();
  const auto before = ::signal(SIGHUP, SIG_DFL);  // nohup ignores it
  const auto hung_up = attach("hung_up");
  ::signal(SIGHUP, before);
  hung_up->signal(SIGHUP);
  EXPECT_EQ(hung_up->wait(), 129) << hung_up->output();
  EXPECT_EQ(state("mine"), "running");
  const auto stopped = attach("stopped");
  stopped->signal(SIGINT);
  EXPECT_EQ(fleetrun.wait(), 130);
  EXPECT_EQ(stopped->wait(), 130) << stopped->output();
}

TEST_F(LocalJobs, Stop_MayGiveAGraceTimeOrNone) {
  for (const char* how : {"--grace=0.2", "--kill"}) {
    Fleetrun& fleetrun = start(std::string("stubborn") + how,
                               "trap '' TERM; echo hello; sleep 1000", {"--grace=1000"});
    while (fleetrun.output().find("hello") == std::string::npos) ::poll(nullptr, 0, 5);
    run_command({"stop", std::to_string(fleetrun.pid()), how});
    EXPECT_EQ(fleetrun.wait(), 143) << fleetrun.output();
  }
  EXPECT_THAT(run_command({"stop", "none", "--grace=-1"}, 2), StartsWith("fleetrun: --grace: "));
  EXPECT_THAT(run_command({"stop", "none", "--kill", "--grace=1"}, 2),
              StartsWith("fleetrun: --grace: "));
}

TEST_F(LocalJobs, Stop_DiffersFromFailure) {
  EXPECT_EQ(run("itself", "test $RANK = 0 && kill -TERM $$; sleep 1000"), 143);
  EXPECT_EQ(state("itself"), "failed (143)");
  Fleetrun& interrupted = start_waiting("interrupted");
  interrupted.signal(SIGINT);
  EXPECT_EQ(interrupted.wait(), 130);
  EXPECT_EQ(state("interrupted"), "stopped (SIGINT)");
  // It had not met the other node yet.
  Fleetrun& alone = start("alone", "exit 0", {"--nnodes=2", "--master=127.0.0.1:" + port});
  wait_for_state("alone", "waiting for nodes");
  run_command({"stop", "alone"});
  EXPECT_EQ(alone.wait(), 143);
  EXPECT_EQ(state("alone"), "stopped (SIGTERM)");
  run_command({"logs", "alone"}, 2);
}

TEST_F(LocalJobs, KilledFleetrun_LeavesOnlyItsName) {
  Fleetrun& fleetrun = start_waiting("mine");
  wait_for_state("mine", "running");
  fleetrun.signal(SIGKILL);
  EXPECT_EQ(fleetrun.wait(), 137);
  EXPECT_EQ(listed("mine")["STATE"], "killed");
  EXPECT_THAT(files(".sock"), IsEmpty());
  EXPECT_THAT(files(".json"), IsEmpty());
  EXPECT_THAT(run_command({"attach", "mine"}, 137), HasSubstr("was killed"));
  // The next start does the same.
  Fleetrun& second = start_waiting("second");
  while (files(".sock").empty()) ::poll(nullptr, 0, 5);
  second.signal(SIGKILL);
  EXPECT_EQ(second.wait(), 137);
  EXPECT_EQ(run("third", "exit 0"), 0);
  EXPECT_THAT(files(".sock"), IsEmpty());
  EXPECT_THAT(files(".json"), IsEmpty());
}

TEST_F(LocalJobs, NodesOfOneJobHere_AreOneLine) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const std::string rendezvous = std::to_string(held.port());
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    start("two", "echo rank $RANK; exit 0",
          {"--ips=127.0.0.1,127.0.0.2", "--host=" + std::string(host), "--start_port=0",
           "--rdzv_port=" + rendezvous, "--log_dir=log." + std::string(host)});
  }
  for (const auto& node : running) EXPECT_EQ(node->wait(), 0) << node->output();
  TableRow row = listed("two");
  EXPECT_EQ(row["STATE"], "succeeded");
  EXPECT_EQ(row["NODES"], "2");
  EXPECT_EQ(row["RANKS"], "4");
  const std::string table = run_command({"ls"});
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2) << table;
  EXPECT_THAT(split(run_command({"logs", "two"}), '\n'),
              IsSupersetOf({"[rank 0] rank 0", "[rank 2] rank 2"}));
  EXPECT_EQ(run_command({"logs", "two", "--rank=3"}), "rank 3\n");
}

}  // namespace
}  // namespace fleet
