// Nodes that search for their host, in a network that is cut into any parts and becomes whole
// again.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/election.h"
#include "rendezvous/host_search.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using Action = HostSearch::Step::Action;

constexpr auto kTurn = 8s, kGiveUp = 60s;

// A job whose node 0 hosts it. A host continues once it has a quorum of the job's nodes.
class Cluster {
 public:
  explicit Cluster(int nodes) : part_(static_cast<size_t>(nodes), 0) {
    for (int rank = 0; rank < nodes; ++rank) nodes_.push_back({.rank = rank, .host = 0});
    nodes_[0].hosts = nodes_[0].continues = true;
  }

  // The nodes of each part reach each other only. All of them notice it.
  void cut(const std::vector<int>& part) {
    part_ = part;
    for (Node& node : nodes_) {
      if (reaches(node.rank, 0)) nodes_[0].members.insert(node.rank);
    }
    const bool continues = has_quorum(size(), nodes_[0].members);
    if (!continues) nodes_[0].hosts = nodes_[0].continues = false;
    for (Node& node : nodes_) {
      if (!continues || !reaches(node.rank, 0)) lose_host(node);
    }
    if (!continues) nodes_[0].members.clear();
  }
  void heal() { part_.assign(nodes_.size(), 0); }

  void pass(std::chrono::milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += 100ms;
      for (Node& node : nodes_) search(node);
      for (Node& node : nodes_) continue_with_quorum(node);
      ASSERT_LE(continuing().size(), 1u);
    }
  }

  std::vector<int> continuing() const {
    std::vector<int> hosts;
    for (const Node& node : nodes_) {
      if (node.continues) hosts.push_back(node.rank);
    }
    return hosts;
  }
  // Whether all nodes follow one host that continues.
  bool is_whole() const {
    const std::vector<int> hosts = continuing();
    return hosts.size() == 1 && std::ranges::all_of(nodes_, [&](const Node& node) {
             return node.rank == hosts[0] || (node.host == hosts[0] && !node.search);
           });
  }

 private:
  struct Node {
    int rank = 0;
    int host = -1;  // that it follows
    bool hosts = false, continues = false;
    std::set<int> members = {};  // of a host
    HostSearch::Time hosts_since = {};
    std::optional<HostSearch> search = {};
  };

  int size() const { return static_cast<int>(nodes_.size()); }
  Node& at(int rank) { return nodes_[static_cast<size_t>(rank)]; }
  bool reaches(int one, int other) const {
    return part_[static_cast<size_t>(one)] == part_[static_cast<size_t>(other)];
  }

  void lose_host(Node& node) {
    HostSearchSettings settings;
    settings.can_host.assign(nodes_.size(), true);
    settings.can_host[0] = false;
    settings.self = node.rank;
    settings.may_host = true;
    settings.turn = kTurn;
    settings.give_up = kGiveUp;
    node.host = -1;
    node.search.emplace(std::move(settings), now_);
  }

  void search(Node& node) {
    if (!node.search) return;
    carry_out(node, node.search->on_time(now_));
    if (!node.search) return;
    for (const int other : node.search->take_questions(now_)) {
      carry_out(node, node.search->on_answer(other, answer_of(node.rank, at(other)), now_));
      if (!node.search) return;
    }
  }

  HostAnswer answer_of(int asker, const Node& node) const {
    if (!reaches(asker, node.rank) || !node.hosts) return HostAnswer::kNone;
    return node.continues ? HostAnswer::kContinues : HostAnswer::kWaits;
  }

  void carry_out(Node& node, const HostSearch::Step& step) {
    if (step.action == Action::kGiveUp) return node.search.reset();
    if (step.action == Action::kHost) {
      node.hosts = true;
      node.hosts_since = now_;
      node.members = {node.rank};
    }
    if (step.action != Action::kJoin) return;
    stop_hosting(node);
    Node& host = at(step.node);
    node.host = host.rank;
    node.search->on_admitted();
    host.members.insert(node.rank);
    if (host.continues) node.search.reset();
  }

  void stop_hosting(Node& node) {
    node.hosts = false;
    for (const int member : std::exchange(node.members, {})) {
      if (member == node.rank) continue;
      at(member).host = -1;
      at(member).search->on_host_gone(now_);
    }
  }

  void continue_with_quorum(Node& node) {
    if (!node.hosts || node.continues || !has_quorum(size(), node.members)) return;
    const bool all = static_cast<int>(node.members.size()) + 1 >= size();
    if (!all && now_ < node.hosts_since + kTurn) return;
    node.continues = true;
    for (const int member : node.members) at(member).search.reset();
  }

  std::vector<int> part_;  // of the network, by node
  std::vector<Node> nodes_;
  HostSearch::Time now_{};
};

// Every way to cut so many nodes: the part of each node.
std::vector<std::vector<int>> all_cuts(int nodes) {
  std::vector<std::vector<int>> cuts = {{}};
  for (int node = 0; node < nodes; ++node) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& cut : cuts) {
      const int parts = cut.empty() ? 0 : *std::ranges::max_element(cut) + 1;
      for (int part = 0; part <= parts; ++part) {
        longer.push_back(cut);
        longer.back().push_back(part);
      }
    }
    cuts = std::move(longer);
  }
  return cuts;
}

TEST(HostSearchCluster, CutIntoAnyParts_AtMostOneGoesOn_AndAllMeetAgain) {
  for (int nodes = 2; nodes <= 5; ++nodes) {
    for (const std::vector<int>& cut : all_cuts(nodes)) {
      Cluster cluster(nodes);
      cluster.cut(cut);
      cluster.pass(40s);
      const std::vector<int> before = cluster.continuing();
      cluster.heal();
      cluster.pass(15s);
      EXPECT_TRUE(cluster.is_whole()) << nodes << " nodes, " << testing::PrintToString(cut);
      if (!before.empty()) {
        EXPECT_EQ(cluster.continuing(), before) << testing::PrintToString(cut);
      }
    }
  }
}

TEST(HostSearchCluster, PartWithTheMajority_GoesOnAtOnce) {
  const std::vector<std::vector<int>> cuts = {{0, 1, 1, 1}, {0, 0, 0, 1}, {0, 0, 1, 1}};
  for (const std::vector<int>& cut : cuts) {
    Cluster cluster(4);
    cluster.cut(cut);
    cluster.pass(2s);
    EXPECT_EQ(cluster.continuing().size(), 1u) << testing::PrintToString(cut);
  }
}

}  // namespace
}  // namespace fleet
