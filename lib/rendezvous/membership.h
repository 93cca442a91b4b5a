// Who belongs to a job: checks newcomers, knows who is missing, and gives out the ranks of an
// epoch. Pure: no clock, no sockets. Not thread-safe.
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

  // Why this node cannot be one of the job (kUsage), or nothing: then it is a member. A node that
  // comes again (same address and instance, its connection was lost) takes the place of its old
  // session, given back in *replaced.
  std::optional<Error> add(SessionId session, NodeInfo info, std::optional<SessionId>* replaced);
  void remove(SessionId session);
  // The job has run: who hosts is node 0 now, whatever was wished, and a --rank is an order only.
  void begin() { begun_ = true; }

  // What should be alike on every node and is not (JobSpec::alike), one clause a difference.
  std::vector<std::string> skew(const NodeInfo& info) const;

  // As many as are to run; at least as many as it may also run with.
  bool complete() const { return host_ && here() >= spec_.nnodes; }
  bool enough() const { return host_ && here() >= spec_.fewest(); }
  const std::map<SessionId, NodeInfo>& members() const { return members_; }
  const JobSpec& spec() const { return spec_; }
  std::optional<SessionId> host() const { return host_; }  // node 0's session
  // "10.0.0.3 (node 2), 10.0.0.4 (node 3)" or, where nodes are only counted, "2 more". At most 8
  // are named.
  std::string missing() const;
  // "10.0.0.1, 10.0.0.2", at most 8.
  std::string present() const;

  // The ranks where there are enough() nodes; of more than are to run the others are spares. The
  // host is node 0. Nodes with a rank of their own, or one of the epoch before, get it or keep
  // their order; the others share what is left, sorted by address, so that the order is the same
  // however they arrive. `previous`: nullptr for the first epoch.
  std::shared_ptr<World> place(int epoch, const World* previous = nullptr) const;

 private:
  int here() const { return static_cast<int>(members_.size()); }
  std::vector<std::pair<int, const NodeInfo*>> chosen(const World* previous) const;
  std::vector<const NodeInfo*> in_order(const World* previous) const;
  std::optional<Error> mismatch(const NodeInfo& info) const;
  std::optional<Error> list_mismatch(const NodeInfo& info) const;
  std::optional<Error> rank_conflict(NodeInfo* info) const;

  JobSpec spec_;
  std::unordered_map<std::string, int> listed_;  // --ips: each one's node rank
  uint64_t digest_ = 0;                          // of --ips
  std::map<SessionId, NodeInfo> members_;
  std::map<std::string, SessionId> by_address_;
  std::map<int, SessionId> by_rank_;  // those with a rank of their own
  std::optional<SessionId> host_;
  bool begun_ = false;
};

// Orders addresses as people do: 10.0.0.9 before 10.0.0.10.
bool address_less(const std::string& a, const std::string& b);
// "a, b, c and 4 more"
std::string list_some(const std::vector<std::string>& names);

}  // namespace fleet
