// The services of dialects that have one, with clients of a few lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

struct Dialects : ::testing::Test {
  // Two nodes of two ranks; both must end well.
  void run(const std::string& dialect, const std::string& script) {
    const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
    std::unique_ptr<Fleetrun> nodes[2];
    for (int node = 0; node < 2; ++node) {
      const std::string number = std::to_string(node);
      nodes[node] = std::make_unique<Fleetrun>(
          job, "node" + number,
          std::vector<std::string>{
              "--ips=127.0.0.1,127.0.0.2", "--host=127.0.0." + std::to_string(node + 1),
              "--start_port=0", "--rdzv_port=" + port, "--nproc_per_node=2",
              "--log_dir=log" + number, "--dialect=" + dialect, "bash", "-c", script});
    }
    for (auto& node : nodes) EXPECT_EQ(node->wait(), 0) << node->output();
  }
  JobFolder job;
};

TEST_F(Dialects, Pmi_RanksOfTwoNodesReadEachOthersKeys) {
  run("mpich", R"(
    ask() { echo "cmd=$1" >&$PMI_FD; read -r answer <&$PMI_FD; }
    ask "init pmi_version=1 pmi_subversion=1"
    ask get_my_kvsname; kvs=${answer##*=}
    ask "put kvsname=$kvs key=P$PMI_RANK value=from$PMI_RANK"
    ask barrier_in
    for rank in 0 1 2 3; do ask "get kvsname=$kvs key=P$rank"; echo "${answer##*value=}"; done
    ask finalize; echo "$answer")");
  for (const char* log : {"log0/workerlog.0", "log0/workerlog.1", "log1/workerlog.1"}) {
    EXPECT_EQ(job.read(log), "from0\nfrom1\nfrom2\nfrom3\ncmd=finalize_ack\n") << log;
  }
}

TEST_F(Dialects, HorovodsServer_ShowsTheSameKeysOnEveryNode) {
  run("horovod", R"(
    ask() {
      exec 9<>/dev/tcp/$HOROVOD_GLOO_RENDEZVOUS_ADDR/$HOROVOD_GLOO_RENDEZVOUS_PORT
      printf "$1 /global_/$2 HTTP/1.0\r\nContent-Length: ${#3}\r\n\r\n$3" >&9
      answer=$(cat <&9); exec 9>&-
    }
    ask PUT $HOROVOD_RANK from$HOROVOD_RANK
    for rank in 0 1 2 3; do
      until ask GET $rank; [[ $answer == *" 200 OK"* ]]; do :; done
      echo "${answer##*from}"
    done)");
  for (const char* log : {"log0/workerlog.0", "log1/workerlog.1"}) {
    EXPECT_EQ(job.read(log), "0\n1\n2\n3\n") << log;
  }
}

TEST_F(Dialects, DryRun_ShowsThem) {
  Fleetrun fleetrun(job, "dry", {"--dry_run", "--dialect=horovod,mpich", "true"});
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_THAT(fleetrun.output(), HasSubstr("HOROVOD_GLOO_RENDEZVOUS_ADDR  127.0.0.1"));
  EXPECT_THAT(fleetrun.output(), HasSubstr("PMI_FD"));
}

}  // namespace
}  // namespace fleet
