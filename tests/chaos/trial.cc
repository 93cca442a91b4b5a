#include "tests/chaos/trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "tests/chaos/small_disk.h"
#include "tests/chaos/wait_until.h"

namespace fleet::chaos {
namespace {

constexpr double kHangLimit = 5;
constexpr double kTermLimit = 0.1;
// Messages are slow while packets are lost.
constexpr double kLossLimit = 20;
constexpr int kLostPercent = 30;
// The job has a process for this from then on.
constexpr int kBothAfterMs = 20;
constexpr double kAwaitHeartbeat = 0.5;
// To start the next generation, and until messages reach a node again that was away.
constexpr double kAgainLimit = 2, kReturnLimit = 8;

class Trial {
 public:
  Trial(Fault fault, uint64_t seed, Network& network, const TrialOptions& options)
      : fault_(fault), random_(seed), network_(network), options_(options) {
    ranks_ = network.nodes() * options.ranks_per_node;
    target_node_ = pick(fault == Fault::kLauncher ? 1 : 0, network.nodes() - 1);
    if (fault == Fault::kHost) target_node_ = 0;
    target_rank_ = pick(0, ranks_ - 1);
    delay_ms_ = pick(fault == Fault::kBoth ? kBothAfterMs : 0, 60);
    if (!is_away()) return;
    away_briefly_ = !options.restarts || pick(0, 1) == 0;
    const int third_ms = static_cast<int>(1e3 * options.heartbeat / 3);
    away_ms_ = away_briefly_ ? pick(100, third_ms) : pick(5 * third_ms, 7 * third_ms);
  }

  TrialResult run() {
    if (fault_ == Fault::kDisk) disk_.emplace(in_folder("log." + std::to_string(target_node_)));
    fault_ == Fault::kAwait ? start_with_a_pause() : start_all();
    if (!wait_until(kStartLimit, [this] { return all_ready(); })) {
      fail("the job did not start");
      end_everything();
      return result_;
    }
    result_.started = true;
    ::usleep(static_cast<useconds_t>(delay_ms_) * 1000);
    inject_fault();
    watch();
    judge();
    return result_;
  }

 private:
  struct Node {
    pid_t pid = -1;
    int status = -1;  // once it has ended
    bool ended = false;
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void fail(const std::string& what) {
    result_.wrong += (result_.wrong.empty() ? "" : "; ") + what;
  }
  std::string in_folder(const std::string& name) const { return options_.folder + "/" + name; }

  // By node, as nodes_ is.
  void start_all() {
    for (int node = 0; node < network_.nodes(); ++node) start(node);
  }

  // All but the last node wait; the target is suspended for longer than a node may be silent.
  void start_with_a_pause() {
    const int last = network_.nodes() - 1;
    target_node_ = std::min(target_node_, last - 1);
    for (int node = 0; node < last; ++node) start(node);
    const std::string host = in_folder("fleetrun.0.out");
    wait_until(kStartLimit, [&] {
      const std::string output = text_of(host);
      return output.find("here: ") != output.npos &&
             output.find(network_.address(last - 1), output.rfind("here: ")) != output.npos;
    });
    const pid_t target = nodes_[static_cast<size_t>(target_node_)].pid;
    ::kill(target, SIGSTOP);
    ::usleep(static_cast<useconds_t>(3e6 * kAwaitHeartbeat));
    ::kill(target, SIGCONT);
    ::usleep(static_cast<useconds_t>(delay_ms_) * 1000);
    start(last);
  }

  void start(int node) {
    std::vector<std::string> words = {options_.fleetrun,
                                      "--ips=" + network_.all_addresses(),
                                      "--nproc_per_node=" + std::to_string(options_.ranks_per_node),
                                      "--log_dir=log." + std::to_string(node),
                                      "--grace=" + std::to_string(options_.grace),
                                      "--rdzv_timeout=60"};
    words.push_back("--heartbeat_timeout=" +
                    std::to_string(fault_ == Fault::kAwait ? kAwaitHeartbeat : options_.heartbeat));
    if (fault_ == Fault::kHang) {
      words.push_back("--hang_timeout=" + std::to_string(options_.hang_timeout));
    }
    if (options_.restarts && is_away()) {
      words.insert(words.end(), {"--max_restart=3", "--elastic_timeout=60"});
    } else if (options_.restarts) {
      words.push_back("--nnodes=2:" + std::to_string(network_.nodes()));
      words.push_back("--elastic_timeout=1");
    }
    words.insert(words.end(), options_.extra.begin(), options_.extra.end());
    words.insert(words.end(), {options_.program, "rank"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string output = in_folder("fleetrun." + std::to_string(node) + ".out");
    Node& started = nodes_.emplace_back();
    started.pid = ::fork();
    if (started.pid != 0) return;
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!network_.enter(node) || ::chdir(options_.folder.c_str()) != 0 || out < 0) ::_exit(90);
    ::dup2(out, 1), ::dup2(out, 2);
    ::setenv("FLEET_RUNTIME_DIR", in_folder("run." + std::to_string(node)).c_str(), 1);
    ::setenv("FLEET_JOB_SECRET", "chaos-needs-no-secret-but-fleetrun-does", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    ::execv(argv[0], argv.data());
    ::_exit(91);
  }

  bool all_ready() {
    reap();
    for (int rank = 0; rank < ranks_; ++rank) {
      if (::access(in_folder("ready." + std::to_string(rank)).c_str(), F_OK) != 0) return false;
    }
    return true;
  }

  pid_t guardian_of(int node) const {
    for (const pid_t child : all_children_of(nodes_[static_cast<size_t>(node)].pid)) {
      const std::string name = text_of("/proc/" + std::to_string(child) + "/comm");
      if (name.starts_with("fleet-guardian")) return child;
    }
    return -1;
  }

  static std::vector<pid_t> all_children_of(pid_t pid) {
    const std::string id = std::to_string(pid);
    std::vector<pid_t> children;
    for (const std::string& part :
         split(text_of("/proc/" + id + "/task/" + id + "/children"), ' ')) {
      long long child = 0;
      if (parse_int(part, &child)) children.push_back(static_cast<pid_t>(child));
    }
    return children;
  }

  pid_t pid_of_rank(int rank) const {
    long long pid = -1;
    parse_int(trim(text_of(in_folder("ready." + std::to_string(rank)))), &pid);
    return static_cast<pid_t>(pid);
  }

  void inject_fault() {
    const std::string of_node = " of node " + std::to_string(target_node_);
    const std::string rank = "rank " + std::to_string(target_rank_);
    pid_t target = nodes_[static_cast<size_t>(target_node_)].pid;
    int signal = SIGKILL;
    switch (fault_) {
      case Fault::kRank:
        target = pid_of_rank(target_rank_), result_.fault = "kill -9 of " + rank;
        break;
      case Fault::kGuardian:
        target = guardian_of(target_node_), result_.fault = "kill -9 of the guardian" + of_node;
        break;
      case Fault::kLauncher:
      case Fault::kHost:
        result_.fault = "kill -9 of the fleetrun" + of_node;
        break;
      case Fault::kLink:
        target = -1, result_.fault = "nft drop on the link" + of_node;
        break;
      case Fault::kFreeze:
        signal = SIGSTOP, result_.fault = "SIGSTOP of the fleetrun" + of_node;
        break;
      case Fault::kHang:
        signal = SIGSTOP, target = pid_of_rank(target_rank_), result_.fault = "SIGSTOP of " + rank;
        break;
      case Fault::kTerm:
        signal = SIGTERM, result_.fault = "SIGTERM to the fleetrun" + of_node;
        break;
      case Fault::kBoth:
        result_.fault = "kill -9 of the fleetrun and the guardian" + of_node;
        break;
      case Fault::kAwait:
        signal = SIGTERM, result_.fault = "SIGSTOP of the waiting fleetrun" + of_node;
        break;
      case Fault::kLoss:
        signal = SIGTERM,
        result_.fault = "30 % packet loss, then SIGTERM to the fleetrun" + of_node;
        lose_packets();
        break;
      case Fault::kDisk:
        target = pid_of_rank(target_rank_);
        result_.fault =
            "a full disk of node " + std::to_string(target_node_) + ", kill -9 of " + rank;
        disk_->fill();
        break;
      case Fault::kOutage:
      case Fault::kSuspend:
        result_.fault = std::string(fault_ == Fault::kOutage ? "nft drop on the link" : "SIGSTOP") +
                        of_node + " for " + std::to_string(away_ms_) + " ms";
        injected_at_ = unix_seconds();
        be_away();
        if (!away_briefly_) return;
        signal = SIGTERM;
        break;
    }
    const pid_t guardian = fault_ == Fault::kBoth ? guardian_of(target_node_) : -1;
    if (fault_ == Fault::kLink) {
      network_.set_cut(target_node_, true);
    } else if (target <= 0) {
      fail("no process to kill");
    }
    injected_at_ = unix_seconds();
    if (target > 0) ::kill(target, signal);
    if (guardian > 0) ::kill(guardian, SIGKILL);
  }

  // The job continues meanwhile.
  void lose_packets() {
    for (int node = 0; node < network_.nodes(); ++node) network_.set_loss(node, kLostPercent);
    const auto over = [this] {
      reap();
      return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.ended; });
    };
    if (wait_until(options_.loss_seconds, over)) fail("a node ended by itself");
  }

  bool is_away() const { return fault_ == Fault::kOutage || fault_ == Fault::kSuspend; }

  // The target node is away, and comes back.
  void be_away() {
    const auto set_away = [this](bool away) {
      if (fault_ == Fault::kOutage) return network_.set_cut(target_node_, away);
      for (const pid_t pid : tree_of(nodes_[static_cast<size_t>(target_node_)].pid))
        ::kill(pid, away ? SIGSTOP : SIGCONT);
    };
    set_away(true);
    ::usleep(static_cast<useconds_t>(away_ms_) * 1000);
    set_away(false);
  }

  static std::vector<pid_t> tree_of(pid_t root) {
    std::vector<pid_t> tree = {root};
    for (size_t i = 0; i < tree.size(); ++i) {
      for (const pid_t child : all_children_of(tree[i])) tree.push_back(child);
    }
    return tree;
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      for (Node& node : nodes_) {
        if (node.pid == pid) node.ended = true, node.status = status;
      }
    }
  }

  // The node whose fleetrun is gone or frozen, or looks for the others: nothing is asked of it.
  bool is_out(int node) const {
    const bool seeks = fault_ == Fault::kLink && goes_on();
    return node == target_node_ && (seeks || fault_ == Fault::kLauncher || fault_ == Fault::kHost ||
                                    fault_ == Fault::kFreeze || fault_ == Fault::kBoth);
  }

  // Until everything of the job has ended, or had to.
  void watch() {
    double limit = kStopLimit + options_.grace + notice_limit();
    if (fault_ == Fault::kLoss) limit += kLossLimit;
    if (goes_on()) limit += kAgainLimit;
    const auto over = [&](bool all) {
      reap();
      for (int node = 0; node < network_.nodes(); ++node) {
        if (!nodes_[static_cast<size_t>(node)].ended && (all || !is_out(node))) return false;
      }
      return true;
    };
    wait_until(kHangGuard, [&] { return over(false); });
    if (fault_ == Fault::kLink) network_.set_cut(target_node_, false);
    for (int node = 0; fault_ == Fault::kLoss && node < network_.nodes(); ++node) {
      network_.set_loss(node, 0);
    }
    if (fault_ == Fault::kFreeze || fault_ == Fault::kLink) {
      // Processes of a frozen launcher end when it wakes up or is killed. A launcher that is cut
      // off stops looking for the other nodes, which have ended.
      result_.stopped = unix_seconds() - injected_at_;
      ::kill(nodes_[static_cast<size_t>(target_node_)].pid, SIGCONT);
      wait_until(kHangGuard + 2 * options_.heartbeat, [&] { return over(true); });
    }
    wait_until(limit * options_.slack, [&] { return reap(), descendants({}).empty(); });
    if (result_.stopped == 0) result_.stopped = unix_seconds() - injected_at_;
    result_.left = static_cast<int>(descendants({}).size());
    if (result_.left > 0) {
      for (const pid_t pid : descendants({})) fail("left behind: " + describe_process(pid));
      end_everything();
    }
    if (result_.stopped > limit * options_.slack) {
      fail("stopped after " + std::to_string(result_.stopped) + " s only");
    }
  }

  void end_everything() {
    wait_until(10, [this] {
      for (const pid_t pid : descendants({})) ::kill(pid, SIGKILL);
      reap();
      return descendants({}).empty();
    });
  }

  void judge() {
    for (int node = 0; node < network_.nodes(); ++node) {
      if (is_out(node)) continue;
      const std::string wrong = judge_node(node);
      if (wrong.empty()) continue;
      result_.verdict_right = false;
      fail("node " + std::to_string(node) + ": " + wrong);
    }
    if (goes_on()) return judge_generation();
    if (fault_ == Fault::kTerm || fault_ == Fault::kAwait) judge_signal();
    const bool timed = fault_ == Fault::kLink || fault_ == Fault::kFreeze;
    if (timed && result_.seen > options_.heartbeat * options_.slack) {
      fail("seen after " + std::to_string(result_.seen) + " s only");
    }
    if (fault_ == Fault::kHang &&
        result_.seen > (options_.hang_timeout + kHangLimit) * options_.slack) {
      fail("named after " + std::to_string(result_.seen) + " s only");
    }
  }

  void judge_signal() {
    double last = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::string at = text_of(in_folder("term." + std::to_string(rank)));
      if (at.empty()) return fail("rank " + std::to_string(rank) + " was not told to stop");
      last = std::max(last, std::atof(at.c_str()) - injected_at_);
    }
    result_.seen = last;  // when the last rank knew
    if (last > kTermLimit * options_.slack)
      fail("the last rank heard it after " + std::to_string(last) + " s");
  }

  // Whether the job is to start again.
  bool goes_on() const {
    return options_.restarts && fault_ != Fault::kTerm && fault_ != Fault::kAwait &&
           fault_ != Fault::kLoss && !away_briefly_;
  }

  // Of the nodes that are left, each rank has run once more, and soon.
  void judge_generation() {
    const bool all =
        fault_ == Fault::kRank || fault_ == Fault::kHang || fault_ == Fault::kDisk || is_away();
    const int ranks = all ? ranks_ : ranks_ - options_.ranks_per_node;
    double last = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::string at = text_of(in_folder("again." + std::to_string(rank)));
      if (at.empty() != (rank >= ranks)) {
        result_.verdict_right = false;
        fail("rank " + std::to_string(rank) +
             (at.empty() ? " has not run again" : " has run again"));
      }
      last = std::max(last, std::atof(at.c_str()) - injected_at_);
    }
    result_.seen = last;
    if (last > (kAgainLimit + options_.grace + notice_limit()) * options_.slack) {
      fail("all ran again after " + std::to_string(last) + " s only");
    }
  }

  // Time limit for noticing the fault.
  double notice_limit() const {
    if (fault_ == Fault::kLink || fault_ == Fault::kFreeze) return options_.heartbeat;
    if (is_away()) return away_ms_ / 1e3 + kReturnLimit;
    return fault_ == Fault::kHang ? options_.hang_timeout + kHangLimit : 0;
  }

  // The error in how a node ended whose job was restarted; "" if there is none.
  std::string judge_restarted(int node, int code, const nlohmann::json& json) const {
    const bool left = fault_ == Fault::kGuardian;
    if (node == target_node_ && left) {
      const bool named =
          !json.is_discarded() &&
          json.value("message", "").find("its guardian was killed") != std::string::npos;
      return code == 113 && named ? "" : "ended with " + std::to_string(code) + ", wanted 113";
    }
    const bool full = node == target_node_ && fault_ == Fault::kDisk;
    if (full && json.is_discarded() && code == 0) return "";  // it has no room for one
    if (json.is_discarded()) return "no verdict.json, exit code " + std::to_string(code);
    if (code == 0 && json.value("verdict", "") == "success" && json.value("restarts", 0) == 1) {
      return "";
    }
    return "ended with " + std::to_string(code) + " after " +
           std::to_string(json.value("restarts", 0)) + " restarts: " + json.value("message", "");
  }

  // The error in the node's verdict; "" if it is correct.
  std::string judge_node(int node) {
    const int status = nodes_[static_cast<size_t>(node)].status;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const bool cut_off = node == target_node_ && fault_ == Fault::kLink;
    const auto json = nlohmann::json::parse(
        text_of(in_folder("log." + std::to_string(node) + "/verdict.json")), nullptr, false);
    if (goes_on()) return judge_restarted(node, code, json);
    const bool full = node == target_node_ && fault_ == Fault::kDisk;
    if (full && json.is_discarded() && code == 128 + SIGKILL) return judge_printed(node);
    if (json.is_discarded()) return "no verdict.json, exit code " + std::to_string(code);
    result_.seen = std::max(result_.seen, json.value("time", 0.0) - injected_at_);
    const std::string kind = json.value("verdict", "");
    const auto says = [&](const std::string& what) {
      return "ended with " + std::to_string(code) + ", " + what + ": " + json.value("message", "");
    };
    const auto [wanted, wanted_code] = wanted_end();
    if (kind != wanted || code != wanted_code) return says("wanted " + wanted);
    if (wanted == "rank failed" || wanted == "hang") {
      const int rank = json["rank"].value("rank", -1);
      return rank == target_rank_ ? "" : says("wanted rank " + std::to_string(target_rank_));
    }
    // A node that is cut off from the others reports all of them as lost.
    if (cut_off) return {};
    const int named = json["node"].value("rank", -1);
    if (fault_ == Fault::kGuardian &&
        json.value("message", "").find("its guardian was killed") == std::string::npos) {
      return says("wanted the guardian");
    }
    return named == target_node_ ? "" : says("wanted node " + std::to_string(target_node_));
  }

  // The verdict and exit code of a job that ends.
  std::pair<std::string, int> wanted_end() const {
    switch (fault_) {
      case Fault::kRank:
      case Fault::kDisk:
        return {"rank failed", 128 + SIGKILL};
      case Fault::kHang:
        return {"hang", 115};
      case Fault::kTerm:
      case Fault::kAwait:
      case Fault::kLoss:
      case Fault::kOutage:
      case Fault::kSuspend:
        return {"stopped", 128 + SIGTERM};
      default:
        return {"node lost", 113};
    }
  }

  // Where there was no room for verdict.json, the node's output has the verdict.
  std::string judge_printed(int node) const {
    const std::string output = text_of(in_folder("fleetrun." + std::to_string(node) + ".out"));
    const std::string rank = "rank=[" + std::to_string(target_rank_) + "]";
    return output.find(rank) != std::string::npos ? "" : "says nothing of " + rank;
  }

  const Fault fault_;
  std::mt19937_64 random_;
  Network& network_;
  const TrialOptions& options_;
  int ranks_ = 0, target_node_ = 0, target_rank_ = 0, delay_ms_ = 0;
  int away_ms_ = 0;
  bool away_briefly_ = false;  // nobody is to notice it
  double injected_at_ = 0;
  std::optional<SmallDisk> disk_;  // of the target's logs
  std::vector<Node> nodes_;
  TrialResult result_;
};

}  // namespace

const char* name_of(Fault fault) {
  constexpr const char* kNames[] = {"rank",   "guardian", "launcher", "host",   "link",
                                    "freeze", "hang",     "term",     "both",   "await",
                                    "loss",   "disk",     "outage",   "suspend"};
  return kNames[static_cast<size_t>(fault)];
}

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> all = {
      Fault::kRank,   Fault::kGuardian, Fault::kLauncher, Fault::kHost,   Fault::kLink,
      Fault::kFreeze, Fault::kHang,     Fault::kTerm,     Fault::kBoth,   Fault::kAwait,
      Fault::kLoss,   Fault::kDisk,     Fault::kOutage,   Fault::kSuspend};
  return all;
}

TrialResult run_trial(Fault fault, uint64_t seed, Network& network, const TrialOptions& options) {
  return Trial(fault, seed, network, options).run();
}

}  // namespace fleet::chaos
