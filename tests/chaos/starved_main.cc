// Holds the host of a job, one of its nodes, or all of them to a tenth of a core, by SIGSTOP and
// SIGCONT: no node may be taken for lost, and a node that is frozen meanwhile must still be named.
//
//   starved --nodes 64 --seconds 60 [--tls] [--strict] [--at_once]
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/descriptor_limit.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/thread.h"
#include "launch/tools/simulate/nodes.h"
#include "launch/tools/simulate/tick_lateness.h"
#include "rendezvous/job_nodes.h"
#include "rendezvous/server.h"

namespace fleet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRuns{20}, kStops{180};

struct Options {
  int nodes = 64;
  milliseconds seconds{60'000}, heartbeat_timeout{3'000};
  bool tls = false, strict = false, at_once = false;
};

// The server of the rendezvous, in a process of its own. Forks: create it before threads exist.
class HostProcess {
 public:
  HostProcess(const SimulatedJob& job, const Security& security, milliseconds heartbeat_timeout) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
    socket_ = UniqueFd(ends[0]);
    pid_ = ::fork();
    if (pid_ < 0) throw_errno("fork");
    if (pid_ > 0) {
      ::close(ends[1]);
      return;
    }
    socket_.reset();
    RendezvousServerOptions options;
    options.job = job.spec();
    options.security = security;
    options.heartbeat_timeout = heartbeat_timeout;
    RendezvousServer server(options);
    const TickLateness lateness;
    write_all(ends[1], server.network_address() + "\n", "the address");
    for (char request; ::read(ends[1], &request, 1) == 1;) {
      write_all(ends[1], std::to_string(lateness.longest().count()) + "\n", "the lateness");
    }
    ::_exit(0);
  }
  ~HostProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  HostProcess(const HostProcess&) = delete;

  int pid() const { return pid_; }
  std::string address() { return line(); }
  double seconds_late() {
    write_all(socket_.get(), "?", "a request");
    return std::stod(line()) * 1e-9;
  }

 private:
  std::string line() {
    std::string text;
    for (char byte; ::read(socket_.get(), &byte, 1) == 1 && byte != '\n';) text += byte;
    if (text.empty()) throw Error(ErrorCode::kInternal, "the host has ended");
    return text;
  }

  UniqueFd socket_;
  pid_t pid_ = -1;
};

// Holds processes to a tenth of a core while it lives.
class Hold {
 public:
  explicit Hold(std::vector<int> pids)
      : pids_(std::move(pids)), thread_("hold", [this] { run(); }) {}
  ~Hold() {
    ends_ = true;
    thread_.join();
  }

 private:
  void run() {
    while (!ends_) {
      for (const int pid : pids_) ::kill(pid, SIGSTOP);
      std::this_thread::sleep_for(kStops);
      for (const int pid : pids_) ::kill(pid, SIGCONT);
      std::this_thread::sleep_for(kRuns);
    }
  }

  const std::vector<int> pids_;
  std::atomic<bool> ends_ = false;
  Thread thread_;  // last: it uses the rest
};

// Of all these; `failed` is their sum.
NodesReport reports(std::vector<NodesProcess*> processes,
                    const std::function<void(NodesProcess*)>& request) {
  for (NodesProcess* process : processes) request(process);
  NodesReport all;
  for (NodesProcess* process : processes) {
    NodesReport one = process->report();
    all.failed += one.failed;
    if (all.why.empty()) all.why = one.why;
    for (const int64_t at : one.nanoseconds) {
      all.nanoseconds.assign(1, std::max(at, all.nanoseconds.empty() ? at : all.nanoseconds[0]));
    }
  }
  return all;
}

enum class Held { kHost, kOneNode, kAllNodes };

const char* name_of(Held held) {
  return held == Held::kHost ? "the host" : held == Held::kOneNode ? "one node" : "all nodes";
}

// Returns whether all went well.
bool run_trial(const Options& options, Held held) {
  SimulatedJob job;
  job.ranks = options.nodes;
  job.ranks_per_node = 1;
  const Security security = options.tls ? Security{new_secret(), true, "starved"} : Security{};
  const int last = options.nodes - 1;  // it is frozen at last; the one before may be held
  HostProcess host(job, security, options.heartbeat_timeout);
  NodesProcess most(job, security, 0, last - 1), one(job, security, last - 1, last),
      frozen(job, security, last, options.nodes);
  const std::string address = host.address();
  const auto fails = [&](const std::string& what) {
    std::printf("starved: %s held: FAILED: %s\n", name_of(held), what.c_str());
    return false;
  };
  const NodesReport joined =
      reports({&most, &one, &frozen}, [&](auto* all) { all->join(address); });
  if (joined.failed > 0) return fails(joined.why);

  std::vector<int> pids;
  if (held == Held::kHost) pids = {host.pid()};
  if (held != Held::kHost) pids = {one.pid()};
  if (held == Held::kAllNodes) pids.push_back(most.pid());
  const Hold hold(pids);
  std::this_thread::sleep_for(options.seconds);
  const NodesReport before = reports({&most, &one, &frozen}, [](auto* all) { all->sample(); });
  if (before.failed > 0) return fails(before.why);

  ::kill(frozen.pid(), SIGSTOP);
  const int64_t begin = monotonic_ns();
  const NodesReport after = reports({&most, &one}, [](auto* all) { all->finish(); });
  const double named = static_cast<double>(after.nanoseconds.at(0) - begin) * 1e-9;
  if (after.failed != last || after.why.find("node " + std::to_string(last) + " ") != 0) {
    return fails("the frozen node was not named on all others: " + after.why);
  }
  const auto limit =
      std::chrono::duration<double>(
          heartbeat_intervals_for(
              options.nodes,
              {.heartbeat_interval = heartbeat_interval_for(options.heartbeat_timeout),
               .max_silence = max_silence_for(options.heartbeat_timeout)})
              .max_silence)
          .count();
  const double late = host.seconds_late();
  std::printf(
      "starved: %s held, %d nodes%s: none lost in %.0f s; the frozen node was named after "
      "%.2f s (limit %.2f s, the host's ticks up to %.2f s late)\n",
      name_of(held), options.nodes, options.tls ? ", TLS" : "",
      std::chrono::duration<double>(options.seconds).count(), named, limit, late);
  std::fflush(stdout);
  // The last poll before the freeze, the one that notices it, and the delivery.
  const double held_up = std::chrono::duration<double>(kStops).count();
  const double allowed = limit + 3 * std::max(late, held_up) + 1;
  if (options.strict && named > allowed) return fails("that is too late");
  return true;
}

// In a process of its own: gRPC's threads do not survive a fork.
pid_t start_child(const Options& options, Held held) {
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) {
    int code = 1;
    try {
      code = run_trial(options, held) ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "starved: %s\n", error.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  return child;
}

bool went_well(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run(const CommandLine& line) {
  set_up_logging("ERROR", "starved");
  raise_descriptor_limit();
  const Settings& settings = line.settings;
  const auto time = [&](const char* key) {
    return milliseconds(static_cast<int64_t>(settings.number(key) * 1000));
  };
  Options options;
  options.nodes = static_cast<int>(settings.integer("nodes"));
  options.seconds = time("seconds");
  options.heartbeat_timeout = time("heartbeat_timeout");
  options.tls = settings.boolean("tls");
  options.strict = settings.boolean("strict");
  options.at_once = settings.boolean("at_once");
  bool well = true;
  std::vector<pid_t> children;
  for (const Held held : {Held::kHost, Held::kOneNode, Held::kAllNodes}) {
    const pid_t child = start_child(options, held);
    if (options.at_once)
      children.push_back(child);
    else
      well = went_well(child) && well;
  }
  for (const pid_t child : children) well = went_well(child) && well;
  return well ? 0 : 1;
}

Command make_command() {
  Command command;
  command.syntax.program = "starved";
  command.syntax.about =
      "hold the host, one node, and all nodes of a simulated job to a tenth of a core";
  command.syntax.options.integer({.key = "nodes", .value = "N"}, 64, 2, 1e5, "number of nodes")
      .number({.key = "seconds", .value = "S"}, 60, 0, 86'400, "how long to hold them")
      .number({.key = "heartbeat_timeout", .value = "S"}, 3, 0.2, 3600, "as of fleetrun")
      .flag({.key = "tls"}, "with mutual TLS")
      .flag({.key = "strict"}, "also check when the frozen node is named")
      .flag({.key = "at_once"}, "the three at the same time");
  command.run = run;
  return command;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  try {
    return fleet::run_command(fleet::make_command(),
                              std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "starved: %s\n", error.what());
    return 2;
  }
}
