// fleetrun simulate: measures how long a large job takes to join on this machine. It runs the real
// rendezvous server and, in other processes, the real clients of all nodes, with one TCP connection
// each.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/process_memory.h"
#include "launch/planning/refuse.h"
#include "launch/tools/simulate/nodes.h"
#include "launch/tools/simulate/tick_lateness.h"
#include "rendezvous/job_nodes.h"
#include "rendezvous/server.h"
#include "rendezvous/store_client.h"

namespace fleet {
namespace {

constexpr int kSpareFiles = 200;    // besides the connections
constexpr int kRanksPerId = 128;    // ranks per NCCL id
constexpr int kNodesAProcess = 64;  // a process with fewer is not worthwhile

double seconds_since(int64_t begin, int64_t end) { return static_cast<double>(end - begin) * 1e-9; }

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Every connection needs a file descriptor in this process.
void allow_files(int connections) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t wanted = connections + kSpareFiles;
  if (files.rlim_max < wanted) {
    refuse(std::to_string(connections) + " nodes need " + std::to_string(wanted) +
               " open files, but the limit of a process is " + std::to_string(files.rlim_max),
           "simulate", "raise the hard limit (ulimit -Hn), or simulate fewer ranks");
  }
  files.rlim_cur = std::max(files.rlim_cur, wanted);
  setrlimit(RLIMIT_NOFILE, &files);
}

struct Traffic {
  uint64_t received = 0, sent = 0;
  int connections = 0;
};

// Traffic of the connections that this process serves, as TCP counts it.
Traffic traffic(int port) {
  Traffic all;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  for (int fd = 0; fd < static_cast<int>(files.rlim_cur); ++fd) {
    sockaddr_in6 own{}, peer{};  // both families store the port at the same offset
    socklen_t size = sizeof own, peer_size = sizeof peer;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) continue;
    const bool inet = own.sin6_family == AF_INET || own.sin6_family == AF_INET6;
    if (!inet || ntohs(own.sin6_port) != port) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    tcp_info info{};
    size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    all.received += info.tcpi_bytes_received;
    all.sent += info.tcpi_bytes_acked;
    ++all.connections;
  }
  return all;
}

double resident_mb() { return static_cast<double>(process_memory().resident) * 1e-6; }

// Those of a server with the default options.
JobTimes heartbeat_times_of(const SimulatedJob& job) {
  const std::chrono::milliseconds timeout = RendezvousServerOptions().heartbeat_timeout;
  JobTimes times;
  times.heartbeat_interval = heartbeat_interval_for(timeout);
  times.max_silence = max_silence_for(timeout);
  return heartbeat_intervals_for(job.nnodes(), times);
}

class Simulation {
 public:
  Simulation(const Settings& settings, Security security)
      : settings_(settings), security_(std::move(security)) {
    job_.ranks = static_cast<int>(settings.integer("ranks"));
    job_.ranks_per_node = static_cast<int>(settings.integer("gpus_per_node"));
    times_ = heartbeat_times_of(job_);
  }

  void run() {
    allow_files(job_.nnodes());
    start_nodes();
    lateness_.emplace();  // a thread: not before the forks
    RendezvousServerOptions options;
    options.job = job_.spec();
    options.security = security_;
    const double memory = resident_mb();
    RendezvousServer server(options);
    address_ = server.local_address();
    join(server.port(), memory);
    if (settings_.number("idle") > 0) idle(settings_.number("idle"));
    if (settings_.boolean("store")) get_ids();
    finish();
    processes_.clear();  // closes the connections without a farewell
    server.stop(std::chrono::milliseconds(0));
  }

 private:
  void start_nodes() {
    const int nodes = job_.nnodes();
    const int wanted = static_cast<int>(settings_.integer("processes"));
    const int count = std::clamp(nodes / kNodesAProcess, 1, wanted);
    for (int i = 0; i < count; ++i) {
      const auto from = [&](int64_t part) { return static_cast<int>(part * nodes / count); };
      processes_.emplace_back(job_, security_, from(i), from(i + 1));
    }
    std::printf("%d ranks on %d nodes, %s, one connection per node, nodes in %d process%s\n",
                job_.ranks, nodes, security_.tls ? "mutual TLS" : "plain", count,
                count == 1 ? "" : "es");
    std::fflush(stdout);
  }

  // Collects the replies of all processes; merges and sorts their times.
  NodesReport reports() {
    NodesReport all;
    for (NodesProcess& process : processes_) {
      const NodesReport one = process.report();
      all.failed += one.failed;
      if (all.why.empty()) all.why = one.why;
      all.nanoseconds.insert(all.nanoseconds.end(), one.nanoseconds.begin(), one.nanoseconds.end());
      all.cpu_ns += one.cpu_ns;
      all.late_ns = std::max(all.late_ns, one.late_ns);
    }
    std::sort(all.nanoseconds.begin(), all.nanoseconds.end());
    all.late_ns = std::max<int64_t>(all.late_ns, lateness_->longest().count());
    if (all.failed > 0) {
      if (explains_silence(std::chrono::nanoseconds(all.late_ns), times_.max_silence)) {
        throw Error(
            ErrorCode::kInternal,
            "this machine could not run the simulated nodes: ticks up to " +
                number_text(static_cast<double>(all.late_ns) * 1e-9, 2) + " s late",
            "fleetrun simulate",
            "simulate fewer ranks, or when the machine is idle; the first loss: " + all.why);
      }
      throw Error(ErrorCode::kInternal,
                  std::to_string(all.failed) + " failed; the first reason: " + all.why,
                  "the simulated nodes");
    }
    return all;
  }

  void join(int port, double memory_before) {
    const int64_t begin = monotonic_ns();
    const double cpu = cpu_seconds();
    for (NodesProcess& process : processes_) process.join(address_);
    const NodesReport joined = reports();
    const double used = cpu_seconds() - cpu, memory = resident_mb() - memory_before;
    const Traffic bytes = traffic(port);
    const double nodes = job_.nnodes();
    std::printf(
        "joined: median %.3f s, last %.3f s; CPU: server %.2f s, nodes %.2f s\n"
        "server: %.1f MB received (%.2f KB a node), %.1f MB sent (%.2f KB a node), memory %.0f MB "
        "(%.0f KB a node)\n",
        seconds_since(begin, joined.nanoseconds[joined.nanoseconds.size() / 2]),
        seconds_since(begin, joined.nanoseconds.back()), used,
        static_cast<double>(joined.cpu_ns) * 1e-9, static_cast<double>(bytes.received) * 1e-6,
        static_cast<double>(bytes.received) * 1e-3 / nodes, static_cast<double>(bytes.sent) * 1e-6,
        static_cast<double>(bytes.sent) * 1e-3 / nodes, memory, memory * 1e3 / nodes);
    std::fflush(stdout);
  }

  NodesReport sample_nodes() {
    for (NodesProcess& process : processes_) process.sample();
    return reports();
  }

  void idle(double seconds) {
    // Wait until the heartbeat interval has settled.
    std::this_thread::sleep_for(times_.startup_time + times_.startup_heartbeat_interval);
    const double cpu = cpu_seconds();
    const int64_t begin = monotonic_ns(), theirs = sample_nodes().cpu_ns;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const NodesReport nodes = sample_nodes();
    const double theirs_used = static_cast<double>(nodes.cpu_ns - theirs) * 1e-9;
    const double passed = seconds_since(begin, monotonic_ns());
    std::printf(
        "idle: the server uses %.1f %% of a core, the nodes %.1f %%, over %.1f s; ticks up to "
        "%.3f s late\n",
        100 * (cpu_seconds() - cpu) / passed, 100 * theirs_used / passed, passed,
        static_cast<double>(nodes.late_ns) * 1e-9);
    std::fflush(stdout);
  }

  // Like the ranks of a job: some ranks each publish an id, the first joins them to one value, and
  // everyone gets that value.
  void get_ids() {
    const int ids = (job_.ranks + kRanksPerId - 1) / kRanksPerId;
    const std::string id(128, 'i');
    const auto store = connect_store(address_, job_.spec().config.job_id(), 1, 0, security_);
    const int64_t begin = monotonic_ns();
    std::string all;
    for (int i = 0; i < ids; ++i) store->set("ids/" + std::to_string(i), id);
    for (int i = 0; i < ids; ++i)
      all += store->get("ids/" + std::to_string(i), std::chrono::seconds(60));
    store->set(kSimulatedKey, all);
    const double published = seconds_since(begin, monotonic_ns());
    for (NodesProcess& process : processes_) process.get();
    reports();
    std::printf(
        "store: %d ids of 128 bytes together after %.3f s, all ranks have them after %.3f s\n", ids,
        published, seconds_since(begin, monotonic_ns()));
    std::fflush(stdout);
  }

  void finish() {
    const int64_t begin = monotonic_ns();
    for (NodesProcess& process : processes_) process.finish();
    const NodesReport ended = reports();
    std::printf("ended: every node has the verdict after %.3f s\n",
                seconds_since(begin, ended.nanoseconds.back()));
    std::fflush(stdout);
  }

  const Settings& settings_;
  const Security security_;
  SimulatedJob job_;
  JobTimes times_;
  std::optional<TickLateness> lateness_;  // the server's
  std::vector<NodesProcess> processes_;
  std::string address_;
};

// Runs in a child process, because a process cannot fork safely once gRPC runs.
int run_in_child(const Settings& settings, const Security& security) {
  const pid_t child = ::fork();
  if (child < 0) throw_errno("cannot start another process", {}, Wanted::kProcess);
  if (child == 0) {
    int code = 0;
    try {
      Simulation(settings, security).run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "fleetrun: %s\n", error.what());
      const auto* own = dynamic_cast<const Error*>(&error);
      code = own ? exit_code_for(own->code()) : 1;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run_simulate(const CommandLine& line) {
  set_up_logging("WARNING", "fleetrun");
  if (const int code = run_in_child(line.settings, {})) return code;
  if (!line.settings.boolean("tls")) return 0;
  return run_in_child(line.settings, {new_secret(), true, "fleetrun simulate"});
}

}  // namespace

FLEET_COMMAND(simulate) {
  def.syntax = {
      .program = "fleetrun simulate",
      .about =
          "measure the rendezvous of a large job on this machine\n"
          "Runs the real rendezvous server, and the real clients of all nodes in other processes."};
  def.syntax.options.integer({.key = "ranks", .value = "N"}, 10'000, 1, 4e6, "number of ranks")
      .integer({.key = "gpus_per_node", .value = "N"}, 8, 1, 4096, "ranks per node")
      .integer({.key = "processes", .value = "N"}, 4, 1, 256,
               "number of processes that run the nodes")
      .flag({.key = "tls"}, "repeat the measurement with mutual TLS")
      .flag({.key = "store"}, "also let every rank get the job's NCCL ids from the store")
      .number({.key = "idle", .value = "SECONDS"}, 3, 0, 3600,
              "seconds for which to measure the CPU cost of heartbeats in the idle job; 0: skip");
  def.run = run_simulate;
}

}  // namespace fleet
