// The backend "hierarchical", for several ranks on each of several hosts: combines a communicator
// inside each host and one across hosts.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/gloo.h"
#include "comm/host_communicator.h"
#include "comm/shared_memory.h"

namespace fleet {

// all_reduce with the same number of ranks on every host: each rank reduces its share inside the
// host, then across hosts with the ranks of the same local rank (all shares in parallel), and the
// host gathers. Small messages and hosts of unequal size go through the first rank of each host.
// Memory from allocate() is shared inside the host.
class HierarchicalCommunicator : public HostCommunicator {
 public:
  static std::unique_ptr<HierarchicalCommunicator> make(const CommOptions& options);

  std::string name() const override { return "hierarchical(shm, gloo)"; }
  Buffer allocate(size_t bytes) override;
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  void abort(const Error& why) override;
  std::optional<Traffic> traffic() const override;

  void do_all_reduce(View in, View out, ReduceOp op) override;
  void do_reduce(View in, View out, ReduceOp op, int root) override;
  void do_broadcast(View data, int root) override;
  void do_all_gather(View in, View out) override;
  void do_reduce_scatter(View in, View out, ReduceOp op) override;
  void do_send(View data, int peer) override;
  void do_recv(View data, int peer) override;
  void do_barrier() override;

 private:
  // The host of each rank and its local rank there. Hosts are numbered by their first rank.
  struct Topology {
    explicit Topology(const std::vector<std::string>& nodes);
    std::vector<int> host_of, local_rank_of;  // by rank
    std::vector<std::vector<int>> ranks_on;   // by host; the first rank is the leader
  };

  HierarchicalCommunicator(Group group, std::vector<std::string> nodes,
                           std::unique_ptr<SharedMemoryCommunicator> inner,
                           std::unique_ptr<GlooCommunicator> flat);
  bool is_leader() const { return topology_.local_rank_of[rank()] == 0; }
  int host() const { return topology_.host_of[rank()]; }
  void through_leaders(View in, View out, ReduceOp op);
  // Runs an operation. A failure in one part fails the other parts, so that every rank learns of
  // it.
  template <typename Body>
  void guarded(const Body& body);
  // Like the above, for an operation of all ranks. It is counted, so that a timeout names the late
  // ranks.
  template <typename Body>
  void together(const Body& body);
  char* scratch(std::vector<char>& memory, size_t bytes);

  const std::vector<std::string> nodes_;
  const Topology topology_;
  const bool equal_hosts_;
  const std::unique_ptr<SharedMemoryCommunicator> inner_;  // within this host
  const std::unique_ptr<GlooCommunicator> flat_;           // all ranks
  std::unique_ptr<GlooCommunicator> leaders_;  // the first ranks of all hosts; set if leads()
  // The same local rank on all hosts; set if hosts are equal.
  std::unique_ptr<GlooCommunicator> same_local_rank_;
  GlooLink::Operation operation_;
  std::vector<char> partial_, gathered_;  // never shrink
};

}  // namespace fleet
