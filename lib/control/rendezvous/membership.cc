#include "rendezvous/membership.h"

#include <string.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr int kLast = std::numeric_limits<int>::max();  // sorts nodes without a requested rank last

Error refuse(const wire::Join& info, const std::string& what, const std::string& next) {
  return Error(ErrorCode::kUsage, what, "node " + info.node().address(), next);
}

std::string named(const std::string& address, int node_rank) {
  return address + " (node " + std::to_string(node_rank) + ")";
}

struct Difference {
  std::string name, text;
};
std::vector<Difference> differences(const NamedValues& theirs, const NamedValues& ours) {
  const auto same = [](const wire::NamedValue& a, const wire::NamedValue& b) {
    return a.name() == b.name() && a.value() == b.value();
  };
  // The usual case, thousands of times in a large job.
  if (std::equal(theirs.begin(), theirs.end(), ours.begin(), ours.end(), same)) return {};
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& [name, value] : values_of(theirs)) values[name].first = "'" + value + "'";
  for (const auto& [name, value] : values_of(ours)) values[name].second = "'" + value + "'";
  std::vector<Difference> found;
  for (const auto& [name, value] : values) {
    if (value.first == value.second) continue;
    const auto shown = [](const std::string& text) { return text.empty() ? "not set" : text; };
    found.push_back({name, name + " is " + shown(value.first) + " there and " +
                               shown(value.second) + " on the host"});
  }
  return found;
}

}  // namespace

bool address_less(const std::string& a, const std::string& b) {
  return ::strverscmp(a.c_str(), b.c_str()) < 0;
}

std::string list_some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  if (names.size() <= kShown) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kShown);
  return join(first, ", ") + " and " + std::to_string(names.size() - kShown) + " more";
}

Membership::Membership(JobSpec spec) : spec_(std::move(spec)) {
  if (config().nnodes() < 1) {
    throw Error(ErrorCode::kUsage, "a job needs at least one node", "--nnodes");
  }
  if (!config().addresses().empty() && config().addresses_size() < config().nnodes()) {
    throw Error(ErrorCode::kUsage,
                std::to_string(config().addresses_size()) + " addresses for " +
                    std::to_string(config().nnodes()) + " nodes",
                "--ips", "list every node once");
  }
  for (int i = 0; i < config().addresses_size(); ++i) listed_.emplace(config().addresses(i), i);
  if (!config().addresses().empty()) digest_ = digest_of(config().addresses());
}

std::optional<Error> Membership::list_mismatch(const wire::Join& info) const {
  const wire::JobConfig& theirs = info.job();
  const std::string next = "give every node the same --ips, in the same order";
  if (theirs.addresses_digest() != 0) {
    if (theirs.addresses_digest() == digest_) return std::nullopt;
    return refuse(
        info,
        "was given another long --ips than the host's " + list_some(texts(config().addresses())),
        next);
  }
  if (std::equal(theirs.addresses().begin(), theirs.addresses().end(), config().addresses().begin(),
                 config().addresses().end())) {
    return std::nullopt;
  }
  return refuse(info,
                "was given --ips=" + join(texts(theirs.addresses()), ",") +
                    ", the host --ips=" + join(texts(config().addresses()), ","),
                next);
}

std::vector<std::string> Membership::skew(const wire::Join& info) const {
  std::vector<std::string> texts;
  for (const Difference& one : differences(info.job().fingerprint(), config().fingerprint()))
    texts.push_back(one.text);
  return texts;
}

std::optional<Error> Membership::mismatch(const wire::Join& info) const {
  const wire::JobConfig& theirs = info.job();
  // A Join of another version may be empty.
  if (theirs.protocol() != config().protocol() || theirs.version() != config().version()) {
    return refuse(
        info,
        "runs " +
            (theirs.version().empty() ? "an older fleetrun" : "fleetrun " + theirs.version()) +
            " (protocol " + std::to_string(theirs.protocol()) + "), the host " +
            config().version() + " (protocol " + std::to_string(config().protocol()) + ")",
        "install the same version on every node");
  }
  if (theirs.job_id() != config().job_id()) {
    return refuse(info,
                  "the rendezvous it found serves job '" + shown_name(config().job_id()) +
                      "', not job '" + shown_name(theirs.job_id()) + "'",
                  "give every node the same --job_id, and each job its own --rdzv_port");
  }
  if (theirs.nnodes() != config().nnodes()) {
    return refuse(info,
                  "expects " + std::to_string(theirs.nnodes()) + " nodes, the host expects " +
                      std::to_string(config().nnodes()),
                  "give every node the same --ips or --nnodes");
  }
  if (auto error = list_mismatch(info)) return error;
  if (const auto found = differences(theirs.agreed_config(), config().agreed_config());
      !found.empty()) {
    return refuse(info, found[0].text, "give every node the same " + found[0].name);
  }
  if (const auto found = skew(info);
      !found.empty() && !config().allow_skew() && !theirs.allow_skew()) {
    return refuse(info, list_some(found), "make them the same, or give --allow_skew");
  }
  if (info.node().local_world_size() == 0)
    return refuse(info, "has no ranks", "give it at least one");
  if (!is_consistent(info.node())) {
    return refuse(info, "has ranks, devices and numbers of servers that contradict each other",
                  "report this as a bug");
  }
  return std::nullopt;
}

// Also fills in the rank that the address or the host's role implies.
std::optional<Error> Membership::rank_conflict(wire::Join* info) const {
  int wanted = info->has_node_rank() ? info->node_rank() : -1;
  if (!config().addresses().empty()) {
    const auto at = listed_.find(info->node().address());
    if (at == listed_.end()) {
      return refuse(*info,
                    "is not one of the job's nodes: " + list_some(texts(config().addresses())),
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
  if (info->hosts_rendezvous() && wanted < 0) wanted = 0;
  const int places = std::max(config().nnodes(), config().addresses_size());
  if (wanted >= places || wanted < -1) {
    return refuse(*info, "requests node rank " + std::to_string(wanted),
                  "--rank goes from 0 to " + std::to_string(places - 1));
  }
  if (!begun_ && (wanted == 0) != info->hosts_rendezvous()) {
    return refuse(*info,
                  info->hosts_rendezvous()
                      ? "hosts the rendezvous, so it is node 0 and not " + std::to_string(wanted)
                      : "requests node rank 0, which belongs to the node that hosts the rendezvous",
                  "start rank 0 on the node that --master (or the first of --ips) names");
  }
  if (const auto taken = by_rank_.find(wanted); taken != by_rank_.end()) {
    return refuse(*info,
                  "requests node rank " + std::to_string(wanted) + ", which belongs to " +
                      members_.at(taken->second).node().address() + " already",
                  "give every node its own --rank");
  }
  info->clear_node_rank();
  if (wanted >= 0) info->set_node_rank(wanted);
  return std::nullopt;
}

std::optional<SessionId> Membership::earlier_session(const wire::Join& info) const {
  const auto found = by_address_.find(info.node().address());
  if (found == by_address_.end()) return std::nullopt;
  const bool same = members_.at(found->second).instance() == info.instance();
  return same ? std::optional(found->second) : std::nullopt;
}

std::optional<Error> Membership::add(SessionId session, wire::Join info,
                                     std::optional<SessionId>* replaced) {
  replaced->reset();
  if (auto error = mismatch(info)) return error;
  if (const auto found = by_address_.find(info.node().address()); found != by_address_.end()) {
    const wire::Join& member = members_.at(found->second);
    if (member.instance() != info.instance()) {
      return refuse(info, "has joined already (from host " + member.node().hostname() + ")",
                    "start one fleetrun per node, or give each its own --host");
    }
    *replaced = found->second;
    remove(**replaced);
  }
  if (auto error = rank_conflict(&info)) return error;
  // One place is reserved for the host, which may join last.
  const int guests = here() - (host_ ? 1 : 0);
  const bool spares = spec_.restarts.max_restarts > 0;
  if (!info.hosts_rendezvous() && guests >= config().nnodes() - 1 && !spares) {
    return Error(ErrorCode::kStale,
                 "all " + std::to_string(config().nnodes()) + " nodes have joined",
                 "node " + info.node().address(), "raise --nnodes everywhere to use one more");
  }
  by_address_[info.node().address()] = session;
  if (info.has_node_rank()) by_rank_[info.node_rank()] = session;
  if (info.hosts_rendezvous()) host_ = session;
  if (skew(info).empty()) info.clear_job();  // equal to config(): not kept thousands of times
  members_.emplace(session, std::move(info));
  return std::nullopt;
}

void Membership::remove(SessionId session) {
  const auto found = members_.find(session);
  if (found == members_.end()) return;
  by_address_.erase(found->second.node().address());
  if (found->second.has_node_rank()) by_rank_.erase(found->second.node_rank());
  if (host_ == session) host_.reset();
  members_.erase(found);
}

std::string Membership::missing() const {
  if (config().addresses().empty()) {
    return std::to_string(std::max(0, config().nnodes() - here())) + " more";
  }
  std::set<std::string> here;
  for (const auto& [session, info] : members_) here.insert(info.node().address());
  std::vector<std::string> absent;
  for (int i = 0; i < config().addresses_size(); ++i) {
    if (!here.contains(config().addresses(i))) absent.push_back(named(config().addresses(i), i));
  }
  return list_some(absent);
}

std::string Membership::present() const {
  std::vector<std::string> names;
  for (const auto& [session, info] : members_) names.push_back(info.node().address());
  std::sort(names.begin(), names.end(), address_less);
  return list_some(names);
}

// The nodes that will run, with the rank that each requests; node 0 first.
std::vector<std::pair<int, const wire::Join*>> Membership::select_nodes(
    const World* previous) const {
  std::map<std::string, int> before;
  if (previous) {
    for (const wire::Node& node : previous->nodes()) before[node.address()] = node.node_rank();
  }
  std::vector<std::pair<int, const wire::Join*>> nodes;
  for (const auto& [session, info] : members_) {
    const auto old = before.find(info.node().address());
    const int kept = old == before.end() ? kLast : old->second;
    nodes.emplace_back(info.has_node_rank() ? info.node_rank() : kept, &info);
  }
  const wire::Join* host = &members_.at(*host_);
  const auto by_rank = [&](const auto& a, const auto& b) {
    if ((a.second == host) != (b.second == host)) return a.second == host;
    if (a.first != b.first) return a.first < b.first;
    return address_less(a.second->node().address(), b.second->node().address());
  };
  if (here() > config().nnodes()) {  // spares: prefer nodes of the previous generation
    std::sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) {
      const bool first = before.contains(a.second->node().address()) || a.second == host;
      const bool second = before.contains(b.second->node().address()) || b.second == host;
      return first != second ? first : by_rank(a, b);
    });
    nodes.resize(static_cast<size_t>(config().nnodes()));
  }
  std::sort(nodes.begin(), nodes.end(), by_rank);
  return nodes;
}

std::vector<const wire::Join*> Membership::order_nodes(const World* previous) const {
  const auto nodes = select_nodes(previous);
  std::vector<const wire::Join*> order(nodes.size(), nullptr), others;
  for (const auto& [rank, info] : nodes) {
    // With fewer nodes than wanted, the ranks close up.
    const bool full = here() >= config().nnodes() && rank > 0 && rank < config().nnodes();
    if (info == nodes[0].second) {
      order[0] = info;
    } else if (full && !order[static_cast<size_t>(rank)]) {
      order[static_cast<size_t>(rank)] = info;
    } else {
      others.push_back(info);
    }
  }
  auto next = others.begin();
  for (const wire::Join*& place : order) {
    if (!place) place = *next++;
  }
  return order;
}

std::shared_ptr<World> Membership::assign_ranks(int generation, const World* previous) const {
  const wire::Join& host = members_.at(*host_);
  auto world = std::make_shared<World>();
  world->mutable_id()->set_generation(generation);
  world->mutable_id()->set_leader(host.instance());
  world->set_run(previous ? previous->run() : host.instance());
  if (previous) *world->mutable_base() = previous->id();
  for (const wire::Join* info : order_nodes(previous)) *world->add_nodes() = info->node();
  number_ranks(world.get());
  world->set_master_address(host.node().address());
  world->set_master_port(host.master_port());
  return world;
}

}  // namespace fleet
