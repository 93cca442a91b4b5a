#include "tests/chaos/fleetd_trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "tests/chaos/wait_until.h"

namespace fleet::chaos {
namespace {

class Trial {
 public:
  Trial(Victim victim, uint64_t seed, Network& network, const FleetdTrialOptions& options)
      : victim_(victim), network_(network), options_(options), nodes_(network.nodes() - 1) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    target_node_ = pick(0, nodes_ - 1);
    target_rank_ = pick(0, ranks() - 1);
    delay_ms_ = pick(0, 60);
  }

  FleetdTrialResult run() {
    if (start_all()) {
      ::usleep(static_cast<useconds_t>(delay_ms_) * 1000);
      inject_fault();
      watch();
      judge();
    } else {
      fail("the job did not start");
    }
    end_fleetds();
    return result_;
  }

 private:
  struct Process {
    pid_t pid = -1;
    int code = -1;  // as a shell would say it, once it has ended
  };

  int ranks() const { return nodes_ * options_.ranks_per_node; }
  void fail(const std::string& what) {
    result_.wrong += (result_.wrong.empty() ? "" : "; ") + what;
  }
  std::string in_folder(const std::string& name) const { return options_.folder + "/" + name; }

  // In the place of a node, with its output in NAME.out.
  Process start(int node, const std::string& name, std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    Process process;
    process.pid = ::fork();
    if (process.pid != 0) return process;
    const std::string output = in_folder(name + ".out");
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!network_.enter(node) || ::chdir(options_.folder.c_str()) != 0 || out < 0) ::_exit(90);
    ::dup2(out, 1), ::dup2(out, 2);
    ::setenv("FLEET_RUNTIME_DIR", in_folder("run." + name).c_str(), 1);
    ::setenv("FLEETD_SECRET", "chaos-needs-no-secret-but-fleetd-does", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    ::execv(argv[0], argv.data());
    ::_exit(91);
  }

  bool start_all() {
    const std::string fleetd =
        options_.fleetrun.substr(0, options_.fleetrun.rfind('/')) + "/fleetd";
    std::string ips;
    for (int node = 0; node < nodes_; ++node) {
      const std::string name = "fleetd." + std::to_string(node);
      fleetds_.push_back(start(node, name,
                               {fleetd, "--listen=0.0.0.0:6767", "--allow_root",
                                "--state_dir=" + in_folder("state." + std::to_string(node))}));
      ips += (node > 0 ? "," : "") + network_.address(node);
    }
    const auto listen = [this] {
      for (int node = 0; node < nodes_; ++node) {
        const std::string output = text_of(in_folder("fleetd." + std::to_string(node) + ".out"));
        if (output.find("listens on") == std::string::npos) return false;
      }
      return true;
    };
    if (!wait_until(kStartLimit, listen)) return false;
    client_ = start(nodes_, "client",
                    {options_.fleetrun, "--via=fleetd", "--ips=" + ips, "--job_id=chaos",
                     "--nproc_per_node=" + std::to_string(options_.ranks_per_node),
                     "--grace=" + std::to_string(options_.grace), options_.program, "rank"});
    return wait_until(kStartLimit, [this] {
      for (int rank = 0; rank < ranks(); ++rank) {
        if (::access(in_folder("ready." + std::to_string(rank)).c_str(), F_OK) != 0) return false;
      }
      return true;
    });
  }

  // The node's fleetrun is the only child of its fleetd.
  pid_t launcher_of(int node) const {
    const std::string id = std::to_string(fleetds_[static_cast<size_t>(node)].pid);
    long long child = -1;
    parse_int(trim(text_of("/proc/" + id + "/task/" + id + "/children")), &child);
    return static_cast<pid_t>(child);
  }

  void inject_fault() {
    const std::string of_node = " of node " + std::to_string(target_node_);
    long long target = -1;
    switch (victim_) {
      case Victim::kClient:
        target = client_.pid, result_.fault = "kill -9 of the client";
        break;
      case Victim::kFleetd:
        target = fleetds_[static_cast<size_t>(target_node_)].pid;
        result_.fault = "kill -9 of the fleetd" + of_node;
        break;
      case Victim::kLauncher:
        target = launcher_of(target_node_), result_.fault = "kill -9 of the fleetrun" + of_node;
        break;
      case Victim::kRank:
        parse_int(trim(text_of(in_folder("ready." + std::to_string(target_rank_)))), &target);
        result_.fault = "kill -9 of rank " + std::to_string(target_rank_);
        break;
    }
    if (target <= 0) return fail("no process to kill");
    injected_at_ = unix_seconds();
    ::kill(static_cast<pid_t>(target), SIGKILL);
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (client_.pid == pid) client_.code = code;
      for (Process& fleetd : fleetds_) {
        if (fleetd.pid == pid) fleetd.code = code;
      }
    }
  }

  // All that is there but for the fleetds.
  std::vector<pid_t> rest() {
    reap();
    std::vector<pid_t> all = descendants({});
    for (const Process& fleetd : fleetds_) std::erase(all, fleetd.pid);
    return all;
  }

  void watch() {
    wait_until(kHangGuard, [this] { return rest().empty(); });
    result_.stopped = unix_seconds() - injected_at_;
    const auto left = rest();
    result_.left = static_cast<int>(left.size());
    for (const pid_t pid : left) fail("left behind: " + describe_process(pid));
    const double limit = (kStopLimit + options_.grace) * options_.slack;
    if (result_.stopped > limit) {
      fail("stopped after " + std::to_string(result_.stopped) + " s only");
    }
  }

  void judge() {
    const bool of_rank = victim_ == Victim::kRank, of_client = victim_ == Victim::kClient;
    const int code = of_rank || of_client ? 128 + SIGKILL : 113;
    if (client_.code != code) {
      result_.verdict_right = false;
      fail("the client ended with " + std::to_string(client_.code) + " instead of " +
           std::to_string(code));
    }
    for (int node = 0; node < nodes_; ++node) {
      if (node == target_node_ && !of_rank && !of_client) continue;  // nothing is asked of it
      const std::string wrong = judge_node(node);
      if (wrong.empty()) continue;
      result_.verdict_right = false;
      fail("node " + std::to_string(node) + ": " + wrong);
    }
  }

  // The error in the node's verdict; "" if it is correct.
  std::string judge_node(int node) const {
    const std::string path = in_folder("log/chaos/node" + std::to_string(node) + "/verdict.json");
    const auto json = nlohmann::json::parse(text_of(path), nullptr, false);
    if (json.is_discarded()) return "no verdict.json";
    const std::string kind = json.value("verdict", ""),
                      result = kind + ": " + json.value("message", "");
    if (victim_ == Victim::kClient) {
      return kind == "stopped" && json.value("signal", "") == "SIGHUP" ? "" : result;
    }
    if (victim_ == Victim::kRank) {
      const bool right = kind == "rank failed" && json["rank"].value("rank", -1) == target_rank_;
      return right ? "" : result + ", wanted rank " + std::to_string(target_rank_);
    }
    const bool right = kind == "node lost" && json["node"].value("rank", -1) == target_node_;
    return right ? "" : result + ", wanted node " + std::to_string(target_node_);
  }

  void end_fleetds() {
    for (const Process& fleetd : fleetds_) {
      if (fleetd.code < 0) ::kill(fleetd.pid, SIGTERM);
    }
    wait_until(kHangGuard, [this] { return rest().empty() && descendants({}).empty(); });
    for (size_t node = 0; node < fleetds_.size(); ++node) {
      const bool struck = victim_ == Victim::kFleetd && static_cast<int>(node) == target_node_;
      if (fleetds_[node].code == (struck ? 128 + SIGKILL : 0)) continue;
      fail("the fleetd of node " + std::to_string(node) + " ended with " +
           std::to_string(fleetds_[node].code));
    }
    wait_until(kHangGuard, [this] {
      for (const pid_t pid : descendants({})) ::kill(pid, SIGKILL);
      reap();
      return descendants({}).empty();
    });
  }

  const Victim victim_;
  Network& network_;
  const FleetdTrialOptions& options_;
  const int nodes_;
  int target_node_ = 0, target_rank_ = 0, delay_ms_ = 0;
  double injected_at_ = 0;
  std::vector<Process> fleetds_;
  Process client_;
  FleetdTrialResult result_;
};

}  // namespace

const char* name_of(Victim victim) {
  constexpr const char* kNames[] = {"client", "fleetd", "launcher", "rank"};
  return kNames[static_cast<size_t>(victim)];
}

const std::vector<Victim>& all_victims() {
  static const std::vector<Victim> all = {Victim::kClient, Victim::kFleetd, Victim::kLauncher,
                                          Victim::kRank};
  return all;
}

FleetdTrialResult run_fleetd_trial(Victim victim, uint64_t seed, Network& network,
                                   const FleetdTrialOptions& options) {
  return Trial(victim, seed, network, options).run();
}

}  // namespace fleet::chaos
