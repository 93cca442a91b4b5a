// The backend "hierarchical", for several ranks on each of several hosts: combines a communicator
// inside each host and one across hosts.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "comm/gloo.h"
#include "comm/recorded_communicator.h"
#include "comm/shared_memory.h"
#include "comm/two_level.h"

namespace fleet {
namespace {

// From this size on, the ranks of a host share all_reduce's work across hosts.
constexpr size_t kSharedFrom = 64 << 10;

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

HierarchicalCommunicator::Topology::Topology(const std::vector<std::string>& nodes) {
  std::map<std::string, int> known;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    const auto [entry, is_new] = known.emplace(nodes[rank], static_cast<int>(known.size()));
    if (is_new) ranks_on.emplace_back();
    host_of.push_back(entry->second);
    local_rank_of.push_back(static_cast<int>(ranks_on[entry->second].size()));
    ranks_on[entry->second].push_back(static_cast<int>(rank));
  }
}

std::unique_ptr<HierarchicalCommunicator> HierarchicalCommunicator::make(
    const CommOptions& options) {
  const Topology topology(options.nodes);
  const int host = topology.host_of[options.rank];
  CommOptions inside = options;
  inside.rank = topology.local_rank_of[options.rank];
  inside.size = static_cast<int>(topology.ranks_on[host].size());
  inside.group = options.group + "/host" + std::to_string(host);
  inside.names.clear();
  inside.nodes.clear();
  for (int rank : topology.ranks_on[host]) {
    inside.names.push_back(options.names[rank]);
    inside.nodes.push_back(options.nodes[rank]);
  }
  auto flat = GlooCommunicator::make(options);
  auto inner = SharedMemoryCommunicator::make(inside, false);
  return std::unique_ptr<HierarchicalCommunicator>(
      new HierarchicalCommunicator({options.rank, options.size, options.names}, options.nodes,
                                   std::move(inner), std::move(flat)));
}

HierarchicalCommunicator::HierarchicalCommunicator(Group group, std::vector<std::string> nodes,
                                                   std::unique_ptr<SharedMemoryCommunicator> inner,
                                                   std::unique_ptr<GlooCommunicator> flat)
    : HostCommunicator(std::move(group)),
      nodes_(std::move(nodes)),
      topology_(nodes_),
      equal_hosts_(std::all_of(
          topology_.ranks_on.begin(), topology_.ranks_on.end(),
          [&](const auto& ranks) { return ranks.size() == topology_.ranks_on[0].size(); })),
      inner_(std::move(inner)),
      flat_(std::move(flat)) {
  std::vector<int> leaders, same_local_rank;
  for (const std::vector<int>& ranks : topology_.ranks_on) {
    leaders.push_back(ranks[0]);
    if (equal_hosts_) same_local_rank.push_back(ranks[topology_.local_rank_of[rank()]]);
  }
  operation_ = {&flat_->members(), ~flat_->id(), 0, &flat_->counter()};
  if (is_leader()) {
    leaders_ = flat_->subgroup(leaders);
    leaders_->report_as(&operation_);
  }
  if (equal_hosts_) {
    same_local_rank_ = flat_->subgroup(same_local_rank);
    same_local_rank_->report_as(&operation_);
  }
  inner_->control_block().set_late_ranks([this] { return flat_->link().late_names(operation_); });
}

Buffer HierarchicalCommunicator::allocate(size_t bytes) { return inner_->allocate(bytes); }

std::unique_ptr<Communicator> HierarchicalCommunicator::split(std::span<const int> ranks) {
  Group sub = group_.subgroup(ranks);
  std::vector<std::string> nodes;
  std::vector<int> inside;  // the local ranks on this host
  for (int rank : ranks) {
    nodes.push_back(nodes_[rank]);
    if (nodes_[rank] == nodes_[this->rank()]) inside.push_back(topology_.local_rank_of[rank]);
  }
  if (inside.size() == ranks.size()) return inner_->split(inside);
  auto flat = flat_->subgroup(ranks);
  if (Topology(nodes).ranks_on.size() == ranks.size()) return flat;
  std::unique_ptr<Communicator> inner = inner_->split(inside);
  return std::unique_ptr<Communicator>(
      new HierarchicalCommunicator(std::move(sub), std::move(nodes),
                                   std::unique_ptr<SharedMemoryCommunicator>(
                                       static_cast<SharedMemoryCommunicator*>(inner.release())),
                                   std::move(flat)));
}

void HierarchicalCommunicator::abort(const Error& why) {
  inner_->abort(why);
  flat_->abort(why);
}

std::optional<Traffic> HierarchicalCommunicator::traffic() const {
  Traffic sum = flat_->traffic().value();
  return sum += inner_->traffic().value();
}

template <typename Body>
void HierarchicalCommunicator::together(const Body& body) {
  operation_.count = flat_->link().peer_monitor().begin_operation(operation_.group_id);
  guarded(body);
}

template <typename Body>
void HierarchicalCommunicator::guarded(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    abort(error);
    throw;
  }
}

char* HierarchicalCommunicator::scratch(std::vector<char>& memory, size_t bytes) {
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

void HierarchicalCommunicator::through_leaders(View in, View out, ReduceOp op) {
  inner_->do_reduce(in, out, op, 0);
  if (is_leader()) leaders_->do_all_reduce(out, out, op);
  inner_->do_broadcast(out, 0);
}

void HierarchicalCommunicator::do_all_reduce(View in, View out, ReduceOp op) {
  together([&] {
    const auto places = static_cast<size_t>(inner_->size());
    if (!equal_hosts_ || in.bytes() < kSharedFrom || places == 1) {
      through_leaders(in, out, op);
      return;
    }
    // Each local rank reduces its share, in its part of `out`. The remainder takes the short path.
    const size_t share = in.count / places, shared = share * places;
    const View mine = out.part(inner_->rank() * share, share);
    if (in.data != out.data) std::memmove(out.data, in.data, in.bytes());
    inner_->do_reduce_scatter(out.part(0, shared), mine, op);
    same_local_rank_->do_all_reduce(mine, mine, op);
    inner_->do_all_gather(mine, out.part(0, shared));
    if (shared < in.count) {
      const View rest = out.part(shared, in.count - shared);
      through_leaders(rest, rest, op);
    }
  });
}

void HierarchicalCommunicator::do_reduce(View in, View out, ReduceOp op, int root) {
  together([&] {
    const int root_host = topology_.host_of[root], root_local_rank = topology_.local_rank_of[root];
    const bool is_root = rank() == root;
    // The buffer for the reduction among leaders. The leader on the root's host passes it to the
    // root.
    View partial = is_root ? out : View{nullptr, in.count, in.dtype};
    if (is_leader() && !is_root) partial.data = scratch(partial_, in.bytes());
    inner_->do_reduce(in, partial, op, 0);
    if (is_leader()) leaders_->do_reduce(partial, partial, op, root_host);
    if (host() != root_host || root_local_rank == 0) return;
    if (is_leader()) inner_->do_send(partial, root_local_rank);
    if (is_root) inner_->do_recv(out, 0);
  });
}

void HierarchicalCommunicator::do_broadcast(View data, int root) {
  together([&] {
    const int root_host = topology_.host_of[root];
    if (host() == root_host) inner_->do_broadcast(data, topology_.local_rank_of[root]);
    if (is_leader()) leaders_->do_broadcast(data, root_host);
    if (host() != root_host) inner_->do_broadcast(data, 0);
  });
}

void HierarchicalCommunicator::do_all_gather(View in, View out) {
  together([&] {
    // Gathers inside each host, then among the leaders (each host padded to the largest), then
    // reorders by rank.
    size_t most = 0;
    for (const auto& ranks : topology_.ranks_on) most = std::max(most, ranks.size());
    const size_t bytes = in.bytes(), hosts = topology_.ranks_on.size();
    char* of_host = scratch(partial_, most * bytes);
    char* of_all = scratch(gathered_, hosts * most * bytes);
    inner_->do_all_gather(in, {of_host, in.count * inner_->size(), in.dtype});
    const View all = {of_all, hosts * most * in.count, in.dtype};
    if (is_leader()) leaders_->do_all_gather({of_host, most * in.count, in.dtype}, all);
    inner_->do_broadcast(all, 0);
    for (int r = 0; r < size(); ++r) {
      const size_t from = topology_.host_of[r] * most + topology_.local_rank_of[r];
      std::memcpy(static_cast<char*>(out.data) + r * bytes, of_all + from * bytes, bytes);
    }
  });
}

void HierarchicalCommunicator::do_reduce_scatter(View in, View out, ReduceOp op) {
  const View sum = {scratch(gathered_, in.bytes()), in.count, in.dtype};
  do_all_reduce(in, sum, op);
  std::memcpy(out.data, sum.part(rank() * out.count, out.count).data, out.bytes());
}

void HierarchicalCommunicator::do_send(View data, int peer) {
  guarded([&] {
    const bool here = topology_.host_of[peer] == host();
    here ? inner_->do_send(data, topology_.local_rank_of[peer]) : flat_->do_send(data, peer);
  });
}

void HierarchicalCommunicator::do_recv(View data, int peer) {
  guarded([&] {
    const bool here = topology_.host_of[peer] == host();
    here ? inner_->do_recv(data, topology_.local_rank_of[peer]) : flat_->do_recv(data, peer);
  });
}

void HierarchicalCommunicator::do_barrier() {
  together([&] {
    inner_->do_barrier();
    if (is_leader()) leaders_->do_barrier();
    inner_->do_barrier();
  });
}

}  // namespace

bool reduces_within_hosts_first(const Communicator& communicator) {
  const auto* recorded = dynamic_cast<const RecordedCommunicator*>(&communicator);
  const Communicator& inner = recorded ? recorded->inner() : communicator;
  return dynamic_cast<const HierarchicalCommunicator*>(&inner) != nullptr;
}

FLEET_COMM_BACKEND(hierarchical) {
  def.make = [](const CommOptions& options) -> std::unique_ptr<Communicator> {
    return HierarchicalCommunicator::make(options);
  };
}

}  // namespace fleet
