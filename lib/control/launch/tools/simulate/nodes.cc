#include "launch/tools/simulate/nodes.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "launch/tools/simulate/tick_lateness.h"
#include "rendezvous/client.h"
#include "rendezvous/store_client.h"

namespace fleet {

namespace {

constexpr int kStoreConnections = 8;  // per process
constexpr std::chrono::seconds kStoreTimeout{120};

std::string address_of(int node) {
  return "10." + std::to_string(node >> 16) + "." + std::to_string(node >> 8 & 255) + "." +
         std::to_string(node & 255);
}

int64_t cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000L + used.tv_nsec;
}

// A message is a length and a text.
void send_text(int fd, const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) throw Error(ErrorCode::kInternal, "a process of simulated nodes has ended");
    at += static_cast<size_t>(sent);
  }
}

bool receive(int fd, void* data, size_t size) {
  for (size_t at = 0; at < size;) {
    const ssize_t got = ::recv(fd, static_cast<char*>(data) + at, size - at, 0);
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

std::optional<std::string> receive_text(int fd) {
  uint32_t size = 0;
  if (!receive(fd, &size, sizeof size)) return std::nullopt;
  std::string text(size, 0);
  if (!receive(fd, text.data(), size)) return std::nullopt;
  return text;
}

Json to_json(const NodesReport& report) {
  return {{"cpu_ns", report.cpu_ns},
          {"failed", report.failed},
          {"late_ns", report.late_ns},
          {"nanoseconds", report.nanoseconds},
          {"why", report.why}};
}

NodesReport report_of(const Json& json) {
  return {.failed = json.at("failed").get<int64_t>(),
          .why = json.at("why").get<std::string>(),
          .nanoseconds = json.at("nanoseconds").get<std::vector<int64_t>>(),
          .cpu_ns = json.at("cpu_ns").get<int64_t>(),
          .late_ns = json.at("late_ns").get<int64_t>()};
}

// Collects the events of this process's clients. Thread safe.
class EventRecorder {
 public:
  void on_event(const RendezvousEvent& event) {
    const int64_t now = monotonic_ns();
    const MutexLock lock(mutex_);
    if (std::holds_alternative<Assignment>(event)) {
      assigned_.push_back(now);
    } else if (const auto* message = std::get_if<wire::HostMessage>(&event);
               message && message->has_verdict()) {
      ++ended_;
      if (!succeeded(message->verdict())) fail(message->verdict().message());
    } else if (const auto* refusal = std::get_if<Refusal>(&event)) {
      ++ended_;
      fail(refusal->error.what());
    }
    changed_.notify_one();
  }
  // Waits until `count` clients are assigned or have ended.
  NodesReport wait_assigned(size_t count) {
    const MutexLock lock(mutex_);
    while (assigned_.size() + ended_ < count) changed_.wait(mutex_);
    return {.failed = failed_, .why = why_, .nanoseconds = assigned_};
  }
  NodesReport wait_ended(size_t count) {
    const MutexLock lock(mutex_);
    while (ended_ < count) changed_.wait(mutex_);
    return {.failed = failed_, .why = why_, .nanoseconds = {monotonic_ns()}};
  }

  NodesReport status() {
    const MutexLock lock(mutex_);
    return {.failed = failed_, .why = why_, .nanoseconds = {}};
  }

 private:
  void fail(const std::string& why) FLEET_REQUIRES(mutex_) {
    if (failed_++ == 0) why_ = why;
  }
  Mutex mutex_;
  CondVar changed_;
  std::vector<int64_t> assigned_ FLEET_GUARDED_BY(mutex_);
  size_t ended_ FLEET_GUARDED_BY(mutex_) = 0;
  int64_t failed_ FLEET_GUARDED_BY(mutex_) = 0;
  std::string why_ FLEET_GUARDED_BY(mutex_);
};

class Nodes {
 public:
  Nodes(const SimulatedJob& job, const Security& security, int first, int last)
      : job_(job), security_(security), first_(first), last_(last) {}

  NodesReport join(const std::string& address) {
    address_ = address;
    const wire::Join any = join_for(job_.spec().config);
    for (int node = first_; node < last_; ++node) {
      RendezvousClientOptions options;
      options.address = address;
      options.security = security_;
      clients_.push_back(RendezvousClient::make(
          options, [this](const RendezvousEvent& event) { events_.on_event(event); }));
      clients_.back()->start(join_of(any, node));
    }
    return events_.wait_assigned(clients_.size());
  }

  NodesReport get() {
    int ranks = 0;
    for (int node = first_; node < last_; ++node) ranks += job_.ranks_of(node);
    std::atomic<int> left = ranks;
    std::atomic<int64_t> failed = 0;
    std::vector<Thread> threads = start_threads(kStoreConnections, "ranks", [&] {
      const auto store = connect_store(address_, job_.spec().config.job_id(), 1, 0, security_);
      while (left-- > 0) {
        try {
          store->get(kSimulatedKey, kStoreTimeout);
        } catch (const Error&) {
          ++failed;
        }
      }
    });
    for (Thread& thread : threads) thread.join();
    return {.failed = failed,
            .why = failed > 0 ? "calls of the store failed" : "",
            .nanoseconds = {monotonic_ns()}};
  }

  NodesReport finish() {
    for (const auto& client : clients_) {
      client->send(envelope(&wire::NodeMessage::mutable_finished));
    }
    return events_.wait_ended(clients_.size());
  }

  NodesReport status() { return events_.status(); }

 private:
  wire::Join join_of(wire::Join join, int node) const {
    join.set_hosts_rendezvous(node == 0);
    join.mutable_node()->set_address(address_of(node));
    join.mutable_node()->set_hostname("node" + std::to_string(node));
    for (int rank = 0; rank < job_.ranks_of(node); ++rank) {
      add_rank(join.mutable_node(), {rank}, 6070 + rank);
    }
    if (node == 0) join.set_master_port(6070 + job_.ranks_per_node);
    return join;
  }

  SimulatedJob job_;
  Security security_;
  int first_, last_;
  std::string address_;  // address of the rendezvous
  EventRecorder events_;
  std::vector<std::shared_ptr<RendezvousClient>> clients_;
};

// Executes commands until the socket is closed.
[[noreturn]] void run_nodes(int fd, Nodes* nodes) {
  try {
    const TickLateness lateness;
    while (const auto command = receive_text(fd)) {
      const size_t blank = command->find(' ');
      NodesReport report = blank != std::string::npos ? nodes->join(command->substr(blank + 1))
                           : *command == "get"        ? nodes->get()
                           : *command == "finish"     ? nodes->finish()
                                                      : nodes->status();
      report.cpu_ns = cpu_ns();
      report.late_ns = lateness.longest().count();
      send_text(fd, to_json(report).dump());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fleetrun simulate: %s\n", error.what());
  }
  ::_exit(0);
}

}  // namespace

int SimulatedJob::ranks_of(int node) const {
  return std::min(ranks_per_node, ranks - node * ranks_per_node);
}

JobSpec SimulatedJob::spec() const {
  JobSpec spec;
  spec.config.set_job_id("simulated");
  spec.config.set_nnodes(nnodes());
  for (int node = 0; node < nnodes(); ++node) spec.config.add_addresses(address_of(node));
  add_value("--run_mode", "collective", spec.config.mutable_agreed_config());
  return spec;
}

NodesProcess::NodesProcess(const SimulatedJob& job, const Security& security, int first, int last) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
  socket_ = UniqueFd(ends[0]);
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("cannot start another process", {}, Wanted::kProcess);
  if (pid_ == 0) {
    socket_.reset();
    // Never destroyed: the process exits first.
    run_nodes(ends[1], new Nodes(job, security, first, last));
  }
  ::close(ends[1]);
}

NodesProcess::~NodesProcess() {
  if (!socket_) return;  // moved from
  socket_.reset();
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void NodesProcess::send(const std::string& command) { send_text(socket_.get(), command); }

NodesReport NodesProcess::report() {
  const auto text = receive_text(socket_.get());
  if (!text) throw Error(ErrorCode::kInternal, "a process of simulated nodes has ended");
  return report_of(Json::parse(*text));
}

}  // namespace fleet
