#include "rendezvous/membership.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

// Limits on what one node may bring; a node beyond them is broken or hostile.
constexpr size_t kMaxText = 1024;
constexpr size_t kMaxRanksPerNode = 4096;
constexpr size_t kMaxConfigEntries = 256;
constexpr int kLast = std::numeric_limits<int>::max();  // sorts nodes without a wished rank last

Error refuse(const NodeInfo& info, const std::string& what, const std::string& next) {
  return Error(ErrorCode::kUsage, what, "node " + info.address, next);
}

std::string named(const std::string& address, int node_rank) {
  return address + " (node " + std::to_string(node_rank) + ")";
}

bool too_big(const NodeInfo& info) {
  size_t longest = 0;
  for (const std::string* text :
       {&info.job.job_id, &info.job.version, &info.address, &info.hostname, &info.instance}) {
    longest = std::max(longest, text->size());
  }
  return longest > kMaxText || info.ports.size() > kMaxRanksPerNode ||
         info.devices.size() > kMaxRanksPerNode || info.ranks.size() > kMaxRanksPerNode ||
         info.job.agreed_config.size() > kMaxConfigEntries ||
         info.job.fingerprint.size() > kMaxConfigEntries;
}

struct Difference {
  std::string name, text;
};
std::vector<Difference> differences(const std::map<std::string, std::string>& theirs,
                                    const std::map<std::string, std::string>& ours) {
  std::vector<Difference> found;
  if (theirs == ours) return found;
  std::set<std::string> names;
  for (const auto* side : {&theirs, &ours}) {
    for (const auto& [name, value] : *side) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto shown = [&](const std::map<std::string, std::string>& side) {
      const auto at = side.find(name);
      return at == side.end() ? "not set" : "'" + at->second + "'";
    };
    const std::string there = shown(theirs), here = shown(ours);
    if (there == here) continue;
    found.push_back({name, name + " is " + there + " there and " + here + " on the host"});
  }
  return found;
}

// The digits at `at` without leading zeros; moves `at` past them.
std::string_view take_number(const std::string& text, size_t* at) {
  while (*at < text.size() && text[*at] == '0') ++*at;
  const size_t begin = *at;
  while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9') ++*at;
  return std::string_view(text).substr(begin, *at - begin);
}

}  // namespace

bool address_less(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const std::string_view x = take_number(a, &i), y = take_number(b, &j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  if ((a.size() - i) != (b.size() - j)) return a.size() - i < b.size() - j;
  return a < b;
}

std::string list_some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  if (names.size() <= kShown) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kShown);
  return join(first, ", ") + " and " + std::to_string(names.size() - kShown) + " more";
}

Membership::Membership(JobSpec spec) : spec_(std::move(spec)) {
  if (spec_.nnodes < 1) {
    throw Error(ErrorCode::kUsage, "a job needs at least one node", "--nnodes");
  }
  if (!spec_.addresses.empty() && static_cast<int>(spec_.addresses.size()) < spec_.nnodes) {
    throw Error(ErrorCode::kUsage,
                std::to_string(spec_.addresses.size()) + " addresses for " +
                    std::to_string(spec_.nnodes) + " nodes",
                "--ips", "list every node once");
  }
  for (size_t i = 0; i < spec_.addresses.size(); ++i) {
    listed_.emplace(spec_.addresses[i], static_cast<int>(i));
  }
  if (!spec_.addresses.empty()) digest_ = digest_of(spec_.addresses);
}

std::optional<Error> Membership::list_mismatch(const NodeInfo& info) const {
  const JobSpec& theirs = info.job;
  const std::string next = "give every node the same --ips, in the same order";
  if (theirs.addresses_digest != 0) {
    if (theirs.addresses_digest == digest_) return std::nullopt;
    return refuse(
        info, "was given another long --ips than the host's " + list_some(spec_.addresses), next);
  }
  if (theirs.addresses == spec_.addresses) return std::nullopt;
  return refuse(info,
                "was given --ips=" + join(theirs.addresses, ",") +
                    ", the host --ips=" + join(spec_.addresses, ","),
                next);
}

std::vector<std::string> Membership::skew(const NodeInfo& info) const {
  std::vector<std::string> texts;
  for (const Difference& one : differences(info.job.fingerprint, spec_.fingerprint))
    texts.push_back(one.text);
  return texts;
}

std::optional<Error> Membership::mismatch(const NodeInfo& info) const {
  const JobSpec& theirs = info.job;
  if (too_big(info)) return refuse(info, "exceeds the limits of a node", "see the limits in docs");
  if (theirs.job_id != spec_.job_id) {
    return refuse(info,
                  "the rendezvous it found serves job '" + shown_name(spec_.job_id) +
                      "', not job '" + shown_name(theirs.job_id) + "'",
                  "give every node the same --job_id, and each job its own --rdzv_port");
  }
  if (theirs.protocol != spec_.protocol || theirs.version != spec_.version) {
    return refuse(info,
                  "runs fleetrun " + theirs.version + " (protocol " +
                      std::to_string(theirs.protocol) + "), the host " + spec_.version +
                      " (protocol " + std::to_string(spec_.protocol) + ")",
                  "install the same version on every node");
  }
  if (theirs.nnodes != spec_.nnodes) {
    return refuse(info,
                  "expects " + std::to_string(theirs.nnodes) + " nodes, the host expects " +
                      std::to_string(spec_.nnodes),
                  "give every node the same --ips or --nnodes");
  }
  if (auto error = list_mismatch(info)) return error;
  if (const auto found = differences(theirs.agreed_config, spec_.agreed_config); !found.empty()) {
    return refuse(info, found[0].text, "give every node the same " + found[0].name);
  }
  if (const auto found = skew(info); !found.empty() && !spec_.allow_skew && !theirs.allow_skew) {
    return refuse(info, list_some(found), "make them the same, or give --allow_skew");
  }
  if (info.ports.empty()) return refuse(info, "has no ranks", "give it at least one");
  if (info.devices.size() != info.ports.size()) {
    return refuse(info,
                  "has " + std::to_string(info.ports.size()) + " ranks and devices for " +
                      std::to_string(info.devices.size()),
                  "report this as a bug");
  }
  const bool numbered = info.ranks.empty() || info.ranks.size() == info.ports.size();
  if (info.servers < 0 || info.servers > info.nproc() || !numbered) {
    return refuse(info, "has numbers of servers and ranks that contradict each other",
                  "report this as a bug");
  }
  return std::nullopt;
}

// Also fills in the rank that the address or the host's role implies.
std::optional<Error> Membership::rank_conflict(NodeInfo* info) const {
  int wanted = info->node_rank;
  if (!spec_.addresses.empty()) {
    const auto at = listed_.find(info->address);
    if (at == listed_.end()) {
      return refuse(*info, "is not one of the job's nodes: " + list_some(spec_.addresses),
                    "add it to --ips on every node, or set this node's address with --host");
    }
    const int index = at->second;
    if (wanted >= 0 && wanted != index) {
      return refuse(*info,
                    "requests node rank " + std::to_string(wanted) + ", but is number " +
                        std::to_string(index) + " in --ips",
                    "leave out --rank");
    }
    wanted = index;
  }
  if (info->hosts_rendezvous && wanted < 0) wanted = 0;
  const int places = std::max(spec_.nnodes, static_cast<int>(spec_.addresses.size()));
  if (wanted >= places || wanted < -1) {
    return refuse(*info, "requests node rank " + std::to_string(wanted),
                  "--rank goes from 0 to " + std::to_string(places - 1));
  }
  if (!begun_ && (wanted == 0) != info->hosts_rendezvous) {
    return refuse(*info,
                  info->hosts_rendezvous
                      ? "hosts the rendezvous, so it is node 0 and not " + std::to_string(wanted)
                      : "requests node rank 0, which belongs to the node that hosts the rendezvous",
                  "start rank 0 on the node that --master (or the first of --ips) names");
  }
  if (const auto taken = by_rank_.find(wanted); taken != by_rank_.end()) {
    return refuse(*info,
                  "requests node rank " + std::to_string(wanted) + ", which belongs to " +
                      members_.at(taken->second).address + " already",
                  "give every node its own --rank");
  }
  info->node_rank = wanted;
  return std::nullopt;
}

std::optional<Error> Membership::add(SessionId session, NodeInfo info,
                                     std::optional<SessionId>* replaced) {
  replaced->reset();
  if (auto error = mismatch(info)) return error;
  if (const auto found = by_address_.find(info.address); found != by_address_.end()) {
    const NodeInfo& member = members_.at(found->second);
    if (member.instance != info.instance) {
      return refuse(info, "has joined already (from host " + member.hostname + ")",
                    "start one fleetrun per node, or give each its own --host");
    }
    *replaced = found->second;
    remove(**replaced);
  }
  if (auto error = rank_conflict(&info)) return error;
  // One place is reserved for the host, which may join last.
  const int guests = here() - (host_ ? 1 : 0);
  const bool spares = spec_.restarts.max_restarts > 0;
  if (!info.hosts_rendezvous && guests >= spec_.nnodes - 1 && !spares) {
    return Error(ErrorCode::kStale, "all " + std::to_string(spec_.nnodes) + " nodes have joined",
                 "node " + info.address, "raise --nnodes everywhere to use one more");
  }
  by_address_[info.address] = session;
  if (info.node_rank >= 0) by_rank_[info.node_rank] = session;
  if (info.hosts_rendezvous) host_ = session;
  members_.emplace(session, std::move(info));
  return std::nullopt;
}

void Membership::remove(SessionId session) {
  const auto found = members_.find(session);
  if (found == members_.end()) return;
  by_address_.erase(found->second.address);
  by_rank_.erase(found->second.node_rank);
  if (host_ == session) host_.reset();
  members_.erase(found);
}

std::string Membership::missing() const {
  if (spec_.addresses.empty()) {
    return std::to_string(std::max(0, spec_.nnodes - here())) + " more";
  }
  std::set<std::string> here;
  for (const auto& [session, info] : members_) here.insert(info.address);
  std::vector<std::string> absent;
  for (size_t i = 0; i < spec_.addresses.size(); ++i) {
    if (!here.contains(spec_.addresses[i])) absent.push_back(named(spec_.addresses[i], i));
  }
  return list_some(absent);
}

std::string Membership::present() const {
  std::vector<std::string> names;
  for (const auto& [session, info] : members_) names.push_back(info.address);
  std::sort(names.begin(), names.end(), address_less);
  return list_some(names);
}

// The nodes that are to run, with the rank that each requests; node 0 first.
std::vector<std::pair<int, const NodeInfo*>> Membership::select_nodes(const World* previous) const {
  std::map<std::string, int> before;
  if (previous) {
    for (const NodePlacement& node : previous->nodes) before[node.address] = node.node_rank;
  }
  std::vector<std::pair<int, const NodeInfo*>> nodes;
  for (const auto& [session, info] : members_) {
    const auto old = before.find(info.address);
    const int kept = old == before.end() ? kLast : old->second;
    nodes.emplace_back(info.node_rank >= 0 ? info.node_rank : kept, &info);
  }
  const NodeInfo* host = &members_.at(*host_);
  const auto by_rank = [&](const auto& a, const auto& b) {
    if ((a.second == host) != (b.second == host)) return a.second == host;
    if (a.first != b.first) return a.first < b.first;
    return address_less(a.second->address, b.second->address);
  };
  if (here() > spec_.nnodes) {  // spares: prefer nodes of the previous generation
    std::sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) {
      const bool first = before.contains(a.second->address) || a.second == host;
      const bool second = before.contains(b.second->address) || b.second == host;
      return first != second ? first : by_rank(a, b);
    });
    nodes.resize(static_cast<size_t>(spec_.nnodes));
  }
  std::sort(nodes.begin(), nodes.end(), by_rank);
  return nodes;
}

std::vector<const NodeInfo*> Membership::order_nodes(const World* previous) const {
  const auto nodes = select_nodes(previous);
  std::vector<const NodeInfo*> order(nodes.size(), nullptr), others;
  for (const auto& [rank, info] : nodes) {
    // With fewer nodes than wanted, the ranks close up.
    const bool full = here() >= spec_.nnodes && rank > 0 && rank < spec_.nnodes;
    if (info == nodes[0].second) {
      order[0] = info;
    } else if (full && !order[static_cast<size_t>(rank)]) {
      order[static_cast<size_t>(rank)] = info;
    } else {
      others.push_back(info);
    }
  }
  auto next = others.begin();
  for (const NodeInfo*& place : order) {
    if (!place) place = *next++;
  }
  return order;
}

std::shared_ptr<World> Membership::assign_ranks(int generation, const World* previous) const {
  auto world = std::make_shared<World>();
  world->generation = generation;
  world->leader = members_.at(*host_).instance;
  world->run = previous ? previous->run : world->leader;
  if (previous) world->base = previous->id();
  for (const NodeInfo* info : order_nodes(previous)) {
    world->nodes.push_back({info->address, info->hostname, static_cast<int>(world->nodes.size()),
                            world->world_size, info->devices, info->ports, info->servers,
                            world->servers, info->ranks, info->rdzv_port, info->role});
    world->world_size += world->nodes.back().trainers();
    world->servers += info->servers;
  }
  const NodeInfo& host = members_.at(*host_);
  world->master_address = host.address;
  world->master_port = host.master_port;
  return world;
}

}  // namespace fleet
