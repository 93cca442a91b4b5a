// Output of a running job: standard output belongs to the program, standard error
// to fleetrun.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

const std::string kBlock = "-----------  Configuration Arguments -----------\n";
const std::string kPaddlesBorder = "    +" + std::string(87, '=') + "+";

// A terminal, of which everything is read at the end.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    controller_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    EXPECT_GE(controller_, 0);
    EXPECT_EQ(::grantpt(controller_) + ::unlockpt(controller_), 0);
    const winsize size{24, columns, 0, 0};
    EXPECT_EQ(::ioctl(controller_, TIOCSWINSZ, &size), 0);
  }
  ~Terminal() { ::close(controller_); }
  std::string path() const { return ::ptsname(controller_); }
  std::string shown() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(controller_, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

 private:
  int controller_ = -1;
};

struct Screen : ::testing::Test {
  // With standard output and error apart.
  int run(std::vector<std::string> options, const std::string& script,
          const Fleetrun::Environment& environment = {}, const std::string& errors_to = "run.err") {
    options.insert(options.end(), {"sh", "-c", script});
    return run_line(options, environment, errors_to);
  }
  int run_line(const std::vector<std::string>& arguments,
               const Fleetrun::Environment& environment = {},
               const std::string& errors_to = "run.err") {
    Fleetrun fleetrun(job, "run", arguments, environment, {}, "fleetrun", errors_to);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    errors = job.read("run.err");
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  JobFolder job;
  std::string output, errors;
};

TEST_F(Screen, StandardOutput_IsTheProgramsAlone) {
  // The rank that fails waits: a failure ends the other one wherever it is.
  EXPECT_EQ(run({"--nproc_per_node=2", "--table=paddle"},
                "printf 'out\\n50%%\\r'; echo err >&2; : >done.$RANK; "
                "until test -e done.0; do sleep 0.01; done; exit $RANK"),
            1);
  EXPECT_EQ(output, "out\n50%\r");
  EXPECT_THAT(errors, AllOf(HasSubstr(kBlock), HasSubstr("launch train in CPU mode\n"),
                            HasSubstr(kPaddlesBorder)));
  EXPECT_THAT(split(errors, '\n'), Contains("err"));
  EXPECT_EQ(errors.find("\nout\n"), std::string::npos) << errors;  // indented in the verdict
  EXPECT_THAT(split(job.read("log/workerlog.0"), '\n'), IsSupersetOf({"out", "err"}));
}

TEST_F(Screen, StreamsOfSeveralRanks_GoTheirOwnWays) {
  EXPECT_EQ(run({"--nproc_per_node=2", "-t3"}, "echo out$RANK; echo err$RANK >&2"), 0);
  EXPECT_THAT(split(output, '\n'), UnorderedElementsAre("[rank 0] out0", "[rank 1] out1", ""));
  EXPECT_THAT(split(errors, '\n'), IsSupersetOf({"[rank 0] err0", "[rank 1] err1"}));
}

TEST_F(Screen, EqualLines_CollapseWithinTheirStream) {
  // The ranks meet first: a line that comes 0.2 s later is shown by itself.
  EXPECT_EQ(run({"--nproc_per_node=2", "-t3", "--collapse=on"},
                ": >up.$RANK; until test -e up.0 -a -e up.1; do sleep 0.01; done; "
                "echo same; echo same >&2"),
            0);
  EXPECT_EQ(output, "[ranks 0-1] same\n");
  EXPECT_THAT(split(errors, '\n'), Contains("[ranks 0-1] same"));
}

TEST_F(Screen, OnePlaceForBoth_KeepsTheirOrder) {
  Fleetrun fleetrun(job, "run",
                    {"sh", "-c", "for i in $(seq 200); do echo o$i; echo e$i >&2; done"});
  EXPECT_EQ(fleetrun.wait(), 0);
  std::string all;
  for (int i = 1; i <= 200; ++i) {
    all += "o" + std::to_string(i) + "\ne" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(job.read("log/workerlog.0"), all);
  EXPECT_THAT(fleetrun.output(), HasSubstr(all));
}

TEST_F(Screen, Quiet_OnlyWhatGoesWrong) {
  EXPECT_EQ(run({"-q"}, "echo out; echo err >&2"), 0);
  EXPECT_EQ(output, "out\n");
  EXPECT_EQ(errors, "err\n");
  JobFolder other;
  Fleetrun fails(other, "run", {"--quiet", "sh", "-c", "exit 5"}, {}, {}, "fleetrun", "run.err");
  EXPECT_EQ(fails.wait(), 5);
  EXPECT_EQ(fails.output(), "");
  const std::string said = other.read("run.err");
  EXPECT_THAT(said, HasSubstr("rank 0 of 1 exited with 5"));
  EXPECT_EQ(said.find("Configuration"), std::string::npos) << said;
  EXPECT_EQ(said.find("Distributed Envs"), std::string::npos) << said;
}

TEST_F(Screen, OtherPrograms_GetOneLineAtTheStartAndOneAfterASuccess) {
  EXPECT_EQ(run({"--nproc_per_node=2"}, "true"), 0);
  const std::vector<std::string> lines = split(errors, '\n');
  ASSERT_EQ(lines.size(), 3u) << errors;
  EXPECT_THAT(lines[0], AllOf(HasSubstr("2 ranks on 1 node"), HasSubstr("log/environment.log"),
                              HasSubstr("--table=auto")));
  EXPECT_THAT(lines[1], EndsWith(" s"));
  EXPECT_EQ(lines[2], "");
  EXPECT_THAT(job.read("log/environment.log"),
              AllOf(HasSubstr(kBlock + "nproc_per_node: 2\n"), HasSubstr(kPaddlesBorder)));
}

TEST_F(Screen, PaddlesScriptsAndLines_GetTheTable) {
  std::ofstream(job.path() + "/train.sh") << "#!/bin/sh\necho $PADDLE_TRAINER_ID\n";
  EXPECT_EQ(run_line({"sh", "train.sh"}), 0);
  EXPECT_THAT(errors, HasSubstr(kPaddlesBorder));
  ::unlink((job.path() + "/run.err").c_str());
  EXPECT_EQ(run({"--start_port=0"}, "true"), 0);
  EXPECT_THAT(errors, AllOf(HasSubstr(kBlock), HasSubstr(kPaddlesBorder)));
}

TEST_F(Screen, Failure_RepeatsNoLinesThatAreThere) {
  const auto printed = [&](const std::vector<std::string>& options) {
    JobFolder folder;
    std::vector<std::string> line = options;
    line.insert(line.end(), {"sh", "-c", "echo '  it' broke; exit 5"});  // not in the line itself
    Fleetrun fleetrun(folder, "run", line);
    EXPECT_EQ(fleetrun.wait(), 5);
    return fleetrun.output();
  };
  EXPECT_EQ(count_of(printed({}), "it broke"), 1u);
  EXPECT_EQ(count_of(printed({"-r3"}), "it broke"), 1u);  // in the verdict alone
  EXPECT_THAT(printed({}), Not(HasSubstr("ABORT!!!")));
  const std::string table = printed({"--table=auto"});
  EXPECT_EQ(count_of(table, "it broke"), 2u) << table;
  EXPECT_THAT(table, HasSubstr("ABORT!!!"));
}

TEST_F(Screen, ConfigurationBlock_IsWholeInDebugOnly) {
  EXPECT_EQ(run({"--grace=3", "--table=paddle"}, "true"), 0);
  EXPECT_THAT(errors, HasSubstr(kBlock + "grace: 3\ntable: paddle\ntraining_script: sh\n"));
  EXPECT_EQ(run({"--grace=3", "--log_level=DEBUG"}, "true"), 0);
  EXPECT_THAT(split(errors, '\n'), IsSupersetOf({"nnodes: None", "rdzv_timeout: 300"}));
}

TEST_F(Screen, WhatWasAskedFor_GoesToStandardOutput) {
  using Line = std::vector<std::string>;
  for (const Line& question : {Line{"--help"}, Line{"--version"}, Line{"--print_config", "true"}}) {
    EXPECT_EQ(run_line(question), 0);
    EXPECT_NE(output, "") << question[0];
    EXPECT_EQ(errors, "") << question[0];
    ::unlink((job.path() + "/run.out").c_str());
  }
  EXPECT_EQ(run_line({"--dry_run", "--format=json", "true"}), 0);
  EXPECT_TRUE(output.starts_with("{")) << output;
}

TEST_F(Screen, Restart_DoesNotPrintTheTableAgain) {
  EXPECT_EQ(run({"--max_restart=1"}, "test $FLEET_GENERATION = 2"), 0);
  EXPECT_EQ(count_of(errors, "Distributed Envs"), 1u);
  EXPECT_THAT(errors,
              AllOf(HasSubstr("generation 2: restarting 1 processes"), HasSubstr("(rank 0 of 1)")));
}

TEST_F(Screen, FurtherDialects_FollowInTheTable) {
  EXPECT_EQ(run({"--table=auto", "--dialect=paddle,torch"}, "true"), 0);
  EXPECT_THAT(errors, HasSubstr("  LOCAL_WORLD_SIZE  "));
}

TEST_F(Screen, NarrowTerminal_GetsANarrowTableUnlessForced) {
  const Terminal narrow(80), wide(93), forced(80), none(120);
  EXPECT_EQ(run({"--table=auto"}, "true", {}, narrow.path()), 0);
  EXPECT_THAT(narrow.shown(),
              AllOf(HasSubstr("+" + std::string(77, '=') + "+"), Not(HasSubstr(kPaddlesBorder))));
  EXPECT_EQ(run({"--table=auto"}, "true", {}, wide.path()), 0);
  EXPECT_THAT(wide.shown(), HasSubstr(kPaddlesBorder));
  EXPECT_EQ(run({"--table=paddle"}, "true", {}, forced.path()), 0);
  EXPECT_THAT(forced.shown(), HasSubstr(kPaddlesBorder));
  EXPECT_EQ(run({"--table=none"}, "true", {}, none.path()), 0);
  EXPECT_THAT(none.shown(),
              AllOf(Not(HasSubstr("Distributed Envs")), HasSubstr("1 rank on 1 node")));
}

TEST_F(Screen, Colors_AsTheEnvironmentAsks) {
  const std::string script = "printf '\\033[31mred\\033[0m\\n\\033]0;title\\007'; exit 1";
  const Terminal plain(120), colored(120), dumb(120);
  EXPECT_EQ(run({"-q", "-r3"}, script, {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, plain.path()), 1);
  EXPECT_EQ(plain.shown().find('\033'), std::string::npos);
  EXPECT_EQ(run({"-q", "-r3"}, script, {{"TERM", "xterm"}, {"NO_COLOR", ""}}, colored.path()), 1);
  EXPECT_THAT(colored.shown(), AllOf(HasSubstr("\033[31m\033[1mERROR"),
                                     HasSubstr("    \033[31mred\033[0m"), Not(HasSubstr("title"))));
  EXPECT_EQ(run({"-q", "-r3"}, script, {{"TERM", "dumb"}}, dumb.path()), 1);
  EXPECT_EQ(dumb.shown().find('\033'), std::string::npos);
  EXPECT_EQ(run({"-q", "-r3"}, script, {{"FORCE_COLOR", "1"}}), 1);
  EXPECT_THAT(errors, HasSubstr("\033[31m\033[1mERROR"));
}

TEST_F(Screen, NobodyReadsStandardError_TheJobCanBeStopped) {
  const std::string path = job.path() + "/errors";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_CLOEXEC);  // that never reads
  ASSERT_GE(reader, 0);
  Fleetrun fleetrun(job, "run",
                    {"--log_level=DEBUG", "sh", "-c",
                     ": >ready; yes 'a line of the rank' | head -c 300000 >&2; exec sleep 1000"},
                    {}, {}, "fleetrun", path);
  job.wait_for("ready");
  pollfd room = {reader, POLLOUT, 0};
  for (int i = 0; i < 3000 && ::poll(&room, 1, 10) != 0; ++i) ::usleep(10'000);  // until it is full
  fleetrun.signal(SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM);
  EXPECT_THAT(job.survivors(30), IsEmpty());
  ::close(reader);
}

TEST_F(Screen, FileOfStandardError_LosesNothingOfTheVerdict) {
  EXPECT_EQ(run({}, "seq 1 200000 >&2; echo error: at the end >&2; exit 3"), 3);
  EXPECT_THAT(split(errors, '\n'), Contains("100000"));
  EXPECT_THAT(errors, HasSubstr("exited with 3: error: at the end"));
}

}  // namespace
}  // namespace fleet
