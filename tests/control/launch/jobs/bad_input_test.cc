// Mistakes of users, through the real fleetrun: exit code 2, one line that helps, and
// no process started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

struct BadInput : ::testing::Test {
  int run(std::vector<std::string> arguments, const Fleetrun::Environment& environment = {}) {
    arguments.insert(arguments.end(), {"sh", "-c", ": >started"});
    Fleetrun fleetrun(job, "run", arguments, environment);
    const int code = fleetrun.wait();
    const std::string all = fleetrun.output();  // of each run of the test
    output = all.substr(seen);
    seen = all.size();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  // One line, which begins with the subject.
  void expect_usage(const std::vector<std::string>& arguments, const std::string& subject) {
    EXPECT_EQ(run(arguments), 2);
    EXPECT_THAT(output, StartsWith("fleetrun: " + subject));
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  }
  JobFolder job;
  std::string output;
  size_t seen = 0;
};

TEST_F(BadInput, UnknownFlag_NamesTheNearest) {
  EXPECT_EQ(run({"--nproc_per_nod=2", "--job-ids=a"}), 2);
  EXPECT_THAT(output, HasSubstr("corrected: fleetrun --nproc_per_node=2 --job_id=a sh -c"));
}

TEST_F(BadInput, MistypedCommand_NamesTheNearest) {
  expect_usage({"stattus"}, "stattus");
  expect_usage({"no-such-program-at-all"}, "no-such-program-at-all");
}

TEST_F(BadInput, RemovedWorkingFolder_IsNotCalledALog) {
  Fleetrun outer(job, "outer",
                 {"-q", "--log_dir=" + job.path() + "/logs", "sh", "-c",
                  "mkdir gone && cd gone && rmdir ../gone && exec env -i " + program_folder() +
                      "/fleetrun true"});
  EXPECT_EQ(outer.wait(), 2) << outer.output();
  EXPECT_THAT(outer.output(), HasSubstr("working directory"));
  EXPECT_THAT(outer.output(), ::testing::Not(HasSubstr(": :")));
}

// They would run as ranks: /usr/bin/kill with the name of a job.
TEST_F(BadInput, NameOfACommandInOtherTools_NamesOurs) {
  for (const auto& [word, meant] : {std::pair{"kill", "stop"}, {"ps", "ls"}, {"tail", "logs"}}) {
    expect_usage({word}, word);
    EXPECT_THAT(output, HasSubstr(std::string("'fleetrun ") + meant + "'"));
  }
  EXPECT_EQ(run({"--", "true"}), 0);
}

TEST_F(BadInput, OptionWithoutMeaningHere_IsRefused) {
  EXPECT_EQ(run({"--heter_workers=a:1"}), 2);
  EXPECT_EQ(run({"--run_mode=rpc"}), 2);
}

TEST_F(BadInput, IpsWithoutThisHost_ListsItsAddresses) {
  expect_usage({"--ips=203.0.113.1,203.0.113.2"}, "--ips");
}

TEST_F(BadInput, FullDiskForTheOutputOfACommand_IsAFailure) {
  const std::string fleetrun = program_folder() + "/fleetrun";
  const std::string errors = " 2>" + job.path() + "/errors";
  EXPECT_EQ(std::system((fleetrun + " --version >/dev/full" + errors).c_str()), 1 << 8);
  EXPECT_THAT(job.read("errors"), StartsWith("fleetrun: standard output: cannot be written"));
  EXPECT_EQ(std::system((fleetrun + " --help" + errors + " | head -n 1 >/dev/null").c_str()), 0);
  EXPECT_EQ(job.read("errors"), "");
}

// Any node of the host of --master may host the rendezvous: that another one has the port is not
// the only reason why it cannot.
TEST_F(BadInput, MasterAtAPortForRootOnly_IsRefused) {
  const std::string setpriv = "/usr/bin/setpriv";
  const std::string first = read_file("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  const bool root = ::geteuid() == 0;
  if (trim(first) == "0") GTEST_SKIP() << "this machine keeps no ports for root";
  if (root && !std::filesystem::exists(setpriv)) GTEST_SKIP() << "there is no setpriv";
  std::vector<std::string> arguments = {"--nnodes=2", "--master=127.0.0.1:1", "--rdzv_timeout=10",
                                        "true"};
  std::string program = "fleetrun";
  if (root) {
    arguments.insert(arguments.begin(),
                     {"--bounding-set=-net_bind_service", program_folder() + "/fleetrun"});
    program = std::filesystem::relative(setpriv, program_folder()).string();
  }
  Fleetrun fleetrun(job, "run", arguments, {}, {}, program);
  EXPECT_EQ(fleetrun.wait(), 2);
  EXPECT_THAT(fleetrun.output(), HasSubstr("port 1 is for root only"));
}

TEST_F(BadInput, DuplicateIps) { expect_usage({"--ips=127.0.0.1,127.0.0.1"}, "--ips"); }

TEST_F(BadInput, GpusWithoutAGpu) {
  // On a machine with GPUs, none is visible to the tests.
  expect_usage({"--gpus=0,1"}, "--gpus 0,1");
}

TEST_F(BadInput, EndpointPortTaken) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const std::string port = std::to_string(held.port());
  expect_usage({"--start_port=" + port}, "--start_port");
  EXPECT_FALSE(std::filesystem::exists(job.path() + "/log/workerlog.0"));
}

TEST_F(BadInput, RendezvousPortTaken) {
  const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  socklen_t size = sizeof name;
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(::listen(other.get(), 8), 0);
  ASSERT_EQ(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  const std::string port = std::to_string(ntohs(name.sin_port));
  EXPECT_EQ(run({"--nnodes=2", "--rank=0", "--insecure", "--master=127.0.0.1:" + port}), 2);
  EXPECT_THAT(output, HasSubstr("\nfleetrun: 127.0.0.1:" + port + ": "));
}

TEST_F(BadInput, RendezvousPortOfOneNode_IsSaidToHaveNoEffect) {
  for (const std::string flag : {"--rdzv_port", "--master"}) {
    EXPECT_EQ(run({flag + (flag == "--master" ? "=127.0.0.1:7001" : "=7001")}), 0);
    EXPECT_THAT(output, HasSubstr("the port of " + flag + " has no effect"));
  }
}

TEST_F(BadInput, LogDirThatCannotBeWritten) {
  std::ofstream(job.path() + "/file") << "a file";
  expect_usage({"--log_dir=file/log"}, "--log_dir");
  // As where a folder may not be looked into, which root always may.
  expect_usage({"--log_dir=" + std::string(300, 'x')}, "--log_dir");
}

TEST_F(BadInput, ProgramThatIsNotThere) {
  Fleetrun fleetrun(job, "run", {"./no_such_program"});
  EXPECT_EQ(fleetrun.wait(), 2);
  EXPECT_THAT(fleetrun.output(), StartsWith("fleetrun: ./no_such_program: "));
}

TEST_F(BadInput, NoProgram) {
  Fleetrun fleetrun(job, "run", {"--nproc_per_node=2"});
  EXPECT_EQ(fleetrun.wait(), 2);
  EXPECT_THAT(fleetrun.output(), HasSubstr("no program is given"));
}

TEST_F(BadInput, ProgramBehindAListThatEndsInAComma_IsExplained) {
  Fleetrun fleetrun(job, "run", {"--ips=10.0.0.1,", "true"});
  EXPECT_EQ(fleetrun.wait(), 2);
  EXPECT_THAT(fleetrun.output(), HasSubstr("--ips continues"));
}

TEST_F(BadInput, JobIdThatIsNoName_IsRefused) {
  expect_usage({"--job_id=a\n\x1b[31mb"}, "--job_id");
  EXPECT_EQ(output.find('\x1b'), std::string::npos) << output;
  expect_usage({"--job_id=nightly/../../x"}, "--job_id");
}

TEST_F(BadInput, NoRanks_IsRefused) { expect_usage({"--nproc_per_node=0"}, "--nproc_per_node"); }

TEST_F(BadInput, Doctor_LooksWithoutChecks) {
  for (const char* look : {"--version", "--help", "--print_config"}) {
    Fleetrun doctor(job, "doctor", {"doctor", look});
    EXPECT_EQ(doctor.wait(), 0) << doctor.output();
    EXPECT_EQ(doctor.output().find("no check failed"), std::string::npos) << doctor.output();
  }
  Fleetrun doctor(job, "doctor_via", {"doctor", "--via=ssh", "--ips=a,b"});
  EXPECT_EQ(doctor.wait(), 2);
  EXPECT_THAT(doctor.output(), StartsWith("fleetrun: --via: "));
}

TEST_F(BadInput, HelpAndVersion_AreCommandsToo) {
  const auto answer = [&](const std::vector<std::string>& arguments) {
    const JobFolder folder;
    Fleetrun fleetrun(folder, "answer", arguments);
    EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
    return fleetrun.output();
  };
  EXPECT_EQ(answer({"version"}), answer({"--version"}));
  EXPECT_EQ(answer({"-V"}), answer({"--version"}));
  EXPECT_EQ(answer({"help"}), answer({"--help"}));
  EXPECT_EQ(answer({"help", "all"}), answer({"--help", "all"}));
  EXPECT_EQ(answer({"help", "logs"}), answer({"logs", "--help"}));
  EXPECT_EQ(answer({"--help", "logs"}), answer({"logs", "--help"}));
  EXPECT_THAT(answer({"help", "--help"}), StartsWith("usage: fleetrun help"));
  EXPECT_EQ(answer({"help", "version"}), answer({"version", "-h"}));
  Fleetrun none(job, "none", {"help", "nothing"});
  EXPECT_EQ(none.wait(), 2);
}

TEST_F(BadInput, PrintConfig_StartsNothing) {
  EXPECT_EQ(run({"--print_config", "--nproc_per_node=3"}, {{"PADDLE_JOB_ID", "night"}}), 0);
  EXPECT_THAT(split(output, '\n'),
              IsSupersetOf({"nproc_per_node = 3  (--nproc_per_node)",
                            "job_id = \"night\"  (environment PADDLE_JOB_ID)"}));
  EXPECT_EQ(job.read("log/workerlog.0"), "");
}

}  // namespace
}  // namespace fleet
