// Servers and clients on loopback for tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"
#include "tests/control/rendezvous/nodes.h"

namespace fleet {

// Bounds against hanging, not measures.
inline constexpr std::chrono::seconds kSoon{60};

// The Error that a call throws.
template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "no error");
}

inline RendezvousServerOptions server_for(const JobSpec& job) {
  RendezvousServerOptions options;
  options.job = job;
  return options;
}

// A client that remembers what it heard and lets tests wait for it.
class TestNode {
 public:
  explicit TestNode(const std::string& address, std::chrono::milliseconds timeout = kSoon,
                    std::chrono::milliseconds progress = kSoon, const Security& security = {},
                    std::shared_ptr<JobHost> host = nullptr)
      : TestNode(RendezvousClientOptions{.address = address,
                                         .timeout = timeout,
                                         .first_progress = progress,
                                         .progress_every = progress,
                                         .security = security,
                                         .host = std::move(host)}) {}
  explicit TestNode(RendezvousClientOptions options)
      : client(RendezvousClient::make(std::move(options), [this](RendezvousEvent event) {
          std::lock_guard lock(mutex_);
          heard_.push_back(std::move(event));
          changed_.notify_all();
        })) {}

  // The first event of this type, which may have arrived long ago; nullopt if it does not
  // come.
  template <typename Event>
  std::optional<Event> wait_for() {
    std::unique_lock lock(mutex_);
    std::optional<Event> found;
    changed_.wait_for(lock, kSoon, [&] {
      for (const auto& event : heard_) {
        if (const Event* wanted = get_if<Event>(event)) found = *wanted;
        if (found) return true;
      }
      return false;
    });
    return found;
  }
  // Whether an event of one of these types comes.
  template <typename... Events>
  bool hears_one_of() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, [&] {
      for (const auto& event : heard_) {
        if ((get_if<Events>(event) || ...)) return true;
      }
      return false;
    });
  }
  template <typename Event>
  static const Event* get_if(const RendezvousEvent& event) {
    if constexpr (std::is_same_v<Event, Assignment> || std::is_same_v<Event, Refusal> ||
                  std::is_same_v<Event, TakeOver> || std::is_same_v<Event, HostLost> ||
                  std::is_same_v<Event, StepDown>) {
      return std::get_if<Event>(&event);
    } else {
      const auto* envelope = std::get_if<wire::HostMessage>(&event);
      return envelope ? message_in<Event>(*envelope) : nullptr;
    }
  }
  void finish() { client->send(envelope(&wire::NodeMessage::mutable_finished)); }
  void report(const RankExit& exit) {
    client->send(envelope(&wire::NodeMessage::mutable_exit, exit));
  }
  size_t count() {
    std::lock_guard lock(mutex_);
    return heard_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RendezvousEvent> heard_;

 public:
  std::shared_ptr<RendezvousClient> client;  // last: its callback uses the rest
};

// A job with all its nodes joined.
class RunningJob {
 public:
  explicit RunningJob(int nnodes, RendezvousServerOptions options)
      : security(options.security),
        server(std::make_unique<RendezvousServer>(with_nodes(nnodes, std::move(options)))) {
    for (int i = 0; i < nnodes; ++i) {
      // As in fleetrun, the host's own node needs no connection.
      nodes.push_back(std::make_unique<TestNode>(server->local_address(), kSoon, kSoon, security,
                                                 i == 0 ? server->host() : nullptr));
      nodes[i]->client->start(node_of(job, job.config.addresses(i)));
    }
    for (auto& node : nodes) node->wait_for<Assignment>().value();
  }
  explicit RunningJob(int nnodes) : RunningJob(nnodes, {}) {}

  JobSpec job;
  Security security;
  std::unique_ptr<RendezvousServer> server;
  std::vector<std::unique_ptr<TestNode>> nodes;

 private:
  RendezvousServerOptions with_nodes(int nnodes, RendezvousServerOptions options) {
    std::vector<std::string> addresses;
    for (int i = 0; i < nnodes; ++i) addresses.push_back("10.0.0." + std::to_string(i + 1));
    options.job = job = job_of(addresses);
    return options;
  }
};

}  // namespace fleet
