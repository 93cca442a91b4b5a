// kill -9 of a random process of a job at a random moment: nothing is left after 5 s, every exit
// code is right, and a killed rank is the one that is named.
//
//   FLEET_CHAOS_ROUNDS=50 FLEET_CHAOS_SEED=7 chaos_tests
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <memory>
#include <random>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kGoneWithin = 5;  // seconds
constexpr int kNodeLost = 113;
// Every rank starts a daemon that ignores what it can, and both wait.
constexpr char kRank[] =
    "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.5; done' & "
    ": >ready.$RANK; trap '' TERM; while :; do sleep 0.1; done";

enum class Target { kRank, kLauncher, kGuardian };

struct Round {
  int nodes, ranks_per_node, node, rank;  // `rank`: global, of the node that is hit
  Target target;
  bool early;    // at any moment from the start on, or only once all ranks run
  int delay_ms;  // after that
};

Round random_round(std::mt19937_64& random) {
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  Round round;
  round.nodes = 1 + below(2);
  round.ranks_per_node = 1 + below(3);
  round.node = below(round.nodes);
  round.rank = round.node * round.ranks_per_node + below(round.ranks_per_node);
  round.target = static_cast<Target>(below(3));
  // While nodes are still meeting, the loss of one only shows at the rendezvous's timeout.
  round.early = round.nodes == 1 && below(2) == 0;
  round.delay_ms = below(60);
  return round;
}

std::string describe_round(const Round& round) {
  const char* targets[] = {"rank", "fleetrun", "guardian"};
  return std::string("kill -9 of the ") + targets[static_cast<int>(round.target)] + " (rank " +
         std::to_string(round.rank) + ", node " + std::to_string(round.node) + " of " +
         std::to_string(round.nodes) + " with " + std::to_string(round.ranks_per_node) +
         " ranks) " + std::to_string(round.delay_ms) + " ms after " +
         (round.early ? "the start" : "all ranks were ready");
}

bool in_environment(pid_t pid, const std::string& variable) {
  try {
    const std::string all =
        std::string(1, '\0') + read_file("/proc/" + std::to_string(pid) + "/environ");
    return all.find('\0' + variable + '\0') != std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

pid_t parent_of(pid_t pid) {
  try {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return static_cast<pid_t>(std::stol(stat.substr(stat.rfind(')') + 4)));
  } catch (const std::exception&) {
    return 0;
  }
}

class Job {
 public:
  explicit Job(const Round& round) : round_(round) {
    const std::string port = std::to_string(rendezvous_.port());
    const std::string start_port = std::to_string(20000 + std::stoi(port) % 10000);
    for (int node = 0; node < round.nodes; ++node) {
      const std::string number = std::to_string(node);
      std::vector<std::string> arguments = {
          "--nproc_per_node=" + std::to_string(round.ranks_per_node), "--grace=0.5",
          "--log_dir=log" + number};
      if (round.nodes > 1) {
        arguments.insert(arguments.end(),
                         {"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0." + std::to_string(node + 1),
                          "--rdzv_port=" + port, "--start_port=" + start_port});
      }
      arguments.insert(arguments.end(), {"sh", "-c", kRank});
      nodes_.push_back(std::make_unique<Fleetrun>(folder_, "node" + number, arguments));
    }
  }

  void kill_target() {
    if (!round_.early) {
      for (int rank = 0; rank < round_.nodes * round_.ranks_per_node; ++rank) {
        folder_.wait_for("ready." + std::to_string(rank));
      }
    }
    ::poll(nullptr, 0, round_.delay_ms);
    const pid_t victim = find_target();
    ASSERT_GT(victim, 0) << "it never came to be";
    ASSERT_EQ(::kill(victim, SIGKILL), 0);
  }

  void check() {
    EXPECT_THAT(folder_.survivors(kGoneWithin), IsEmpty());
    for (int node = 0; node < round_.nodes; ++node) {
      const int code = nodes_[static_cast<size_t>(node)]->wait();
      const std::string output = nodes_[static_cast<size_t>(node)]->output();
      const bool hit = node == round_.node && round_.target == Target::kLauncher;
      const bool rank = round_.target == Target::kRank;
      EXPECT_EQ(code, rank || hit ? 128 + SIGKILL : kNodeLost) << "node " << node << "\n" << output;
      if (rank) {
        EXPECT_THAT(output, HasSubstr("rank " + std::to_string(round_.rank) + " of "));
      }
    }
  }

 private:
  // Waits until it exists: in an early round it may not yet.
  pid_t find_target() {
    const pid_t launcher = nodes_[static_cast<size_t>(round_.node)]->pid();
    if (round_.target == Target::kLauncher) return launcher;
    for (int turn = 0; turn < 10'000; ++turn, ::poll(nullptr, 0, 1)) {
      for (const pid_t guardian : folder_.processes("fleet-guardian")) {
        if (parent_of(guardian) != launcher) continue;
        if (round_.target == Target::kGuardian) return guardian;
        for (const pid_t pid : folder_.processes("sh")) {
          const std::string rank = "PADDLE_TRAINER_ID=" + std::to_string(round_.rank);
          if (parent_of(pid) == guardian && in_environment(pid, rank) && ::getpgid(pid) == pid &&
              ::getsid(pid) == ::getsid(0)) {
            return pid;
          }
        }
      }
    }
    return -1;
  }

  Round round_;
  const ReservedPort rendezvous_ = ReservedPort::any("127.0.0.1");
  JobFolder folder_;
  std::vector<std::unique_ptr<Fleetrun>> nodes_;
};

TEST(Chaos, RandomKills_LeaveNothingAndAreNamed) {
  const auto rounds = env_int_or("FLEET_CHAOS_ROUNDS", 10);
  const auto seed = env_int_or("FLEET_CHAOS_SEED", 20261120);
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    const Round round = random_round(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(i) + ": " +
                 describe_round(round));
    Job job(round);
    job.kill_target();
    job.check();
  }
}

}  // namespace
}  // namespace fleet
