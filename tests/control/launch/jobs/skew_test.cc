// Nodes that do not have the same program, or not the same settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

struct Skew : ::testing::Test {
  Skew() {
    write(0, "exit 0\n");
    write(1, "exit 0\n");
  }
  // Each node's own copy of the program.
  void write(int node, const std::string& script) const {
    const std::string folder = job.path() + "/node" + std::to_string(node);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/train.sh") << script;
  }
  std::unique_ptr<Fleetrun> start(int node, const Fleetrun::Environment& environment = {},
                                  const std::vector<std::string>& options = {}) const {
    const std::string number = std::to_string(node);
    std::vector<std::string> arguments = {
        "--ips=127.0.0.1, 127.0.0.2", "--host=127.0.0." + std::to_string(node + 1),
        "--log_dir=log" + number, "--rdzv_port=" + std::to_string(rdzv_port),
        "--start_port=" + std::to_string(20000 + rdzv_port % 10000)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"sh", "node" + number + "/train.sh"});
    return std::make_unique<Fleetrun>(job, "node" + number, arguments, environment);
  }
  JobFolder job;
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");  // held: no other's meanwhile
  const int rdzv_port = rendezvous.port();
};

TEST_F(Skew, OtherProgramFile_NodeIsRefusedNamingIt_AndMayComeAgain) {
  write(1, "exit 3\n");
  const auto first = start(0);
  EXPECT_EQ(start(1)->wait(), 2);
  EXPECT_THAT(job.read("node1.out"), HasSubstr("node 127.0.0.2: train.sh is 'hash "));
  write(1, "exit 0\n");
  EXPECT_EQ(start(1)->wait(), 0);
  EXPECT_EQ(first->wait(), 0) << first->output();
}

TEST_F(Skew, OtherNcclSetting_AllowedWithAWarning) {
  const auto first = start(0, {{"NCCL_ALGO", ""}});
  const auto second = start(1, {{"NCCL_ALGO", "Ring"}}, {"--allow_skew"});
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  for (const Fleetrun* node : {first.get(), second.get()}) {
    EXPECT_THAT(node->output(), ::testing::AllOf(HasSubstr("node 127.0.0.2 differs"),
                                                 HasSubstr("NCCL_ALGO is 'Ring'")));
  }
}

TEST_F(Skew, OwnInterfaceOfEachNode_IsNoSkew) {
  const auto first = start(0, {{"NCCL_SOCKET_IFNAME", "eth0"}});
  const auto second = start(1, {{"NCCL_SOCKET_IFNAME", "ens3"}});
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
}

}  // namespace
}  // namespace fleet
