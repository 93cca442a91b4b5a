// The members of a job: checks newcomers, knows the missing nodes and assigns the ranks of a
// generation. Pure: no clock, no sockets. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

using SessionId = uint64_t;  // one connection of one node

class Membership {
 public:
  explicit Membership(JobSpec spec);

  // Returns why this node cannot join (kUsage), or nullopt: then it is a member. A node that joins
  // again (same address and instance, after a lost connection) replaces its old session, which is
  // returned in *replaced.
  std::optional<Error> add(SessionId session, wire::Join info, std::optional<SessionId>* replaced);
  // The session that add() would replace.
  std::optional<SessionId> earlier_session(const wire::Join& info) const;
  void remove(SessionId session);
  // The job has run: from now on the host is node 0, whatever was requested, and --rank gives only
  // an order.
  void begin() { begun_ = true; }

  // Differences in values that should be the same on every node (JobConfig.fingerprint), one clause
  // each.
  std::vector<std::string> skew(const wire::Join& info) const;

  // complete(): as many nodes as are to run. enough(): at least as many as the job may run with.
  bool complete() const { return host_ && here() >= config().nnodes(); }
  bool enough() const { return host_ && here() >= spec_.required_nodes(); }
  // A Join has its JobConfig only if that differs.
  const std::map<SessionId, wire::Join>& members() const { return members_; }
  const JobSpec& spec() const { return spec_; }
  const wire::JobConfig& config() const { return spec_.config; }
  std::optional<SessionId> host() const { return host_; }  // node 0's session
  // "10.0.0.3 (node 2), 10.0.0.4 (node 3)" or, if nodes are only counted, "2 more". Names at most
  // 8.
  std::string missing() const;
  // "10.0.0.1, 10.0.0.2", at most 8.
  std::string present() const;

  // Assigns ranks once there are enough() nodes; surplus nodes become spares. The host is node 0. A
  // node with a rank of its own, or one of the preceding generation, gets it or keeps its place in
  // the order. The others share the remaining ranks, sorted by address, so that the order does not
  // depend on arrival. `previous`: nullptr for the first generation.
  std::shared_ptr<World> assign_ranks(int generation, const World* previous = nullptr) const;

 private:
  int here() const { return static_cast<int>(members_.size()); }
  std::vector<std::pair<int, const wire::Join*>> select_nodes(const World* previous) const;
  std::vector<const wire::Join*> order_nodes(const World* previous) const;
  std::optional<Error> mismatch(const wire::Join& info) const;
  std::optional<Error> list_mismatch(const wire::Join& info) const;
  std::optional<Error> rank_conflict(wire::Join* info) const;

  JobSpec spec_;
  std::unordered_map<std::string, int> listed_;  // --ips: the node rank of each
  uint64_t digest_ = 0;                          // of --ips
  std::map<SessionId, wire::Join> members_;
  std::map<std::string, SessionId> by_address_;
  std::map<int, SessionId> by_rank_;  // nodes with a rank of their own
  std::optional<SessionId> host_;
  bool begun_ = false;
};

// Natural order of addresses: 10.0.0.9 before 10.0.0.10.
bool address_less(const std::string& a, const std::string& b);
// "a, b, c and 4 more"
std::string list_some(const std::vector<std::string>& names);

}  // namespace fleet
