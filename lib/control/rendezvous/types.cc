#include "rendezvous/types.h"

#include <string.h>

#include "base/number_text.h"

namespace fleet {

// Every node's Join has the whole list of --ips. Longer lists are sent as a digest, or the joins of
// a large job would grow quadratically.
constexpr int kMaxListed = 64;

JobSpec::JobSpec() {
  config.set_job_id("default");
  config.set_nnodes(1);
  config.set_protocol(kRendezvousProtocol);
}

wire::Join join_for(const wire::JobConfig& config) {
  wire::Join join;
  *join.mutable_job() = config;
  if (config.addresses_size() > kMaxListed) {
    join.mutable_job()->set_addresses_digest(digest_of(config.addresses()));
    join.mutable_job()->clear_addresses();
  }
  return join;
}

uint64_t digest_of(const google::protobuf::RepeatedPtrField<std::string>& addresses) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: detects errors, not attacks
  const auto mix = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const std::string& address : addresses) {
    for (const char c : address) mix(static_cast<unsigned char>(c));
    mix(0);
  }
  return hash | 1;
}

bool is_consistent(const wire::Node& node) {
  const int size = node.local_world_size();
  return node.servers() >= 0 && node.servers() <= size && node.devices_size() == size &&
         node.ports_size() == size && (node.ranks().empty() || node.ranks_size() == size);
}

int rank_of(const wire::Node& node, int local_rank) {
  if (!node.ranks().empty()) return node.ranks(local_rank);
  return is_server(node, local_rank) ? node.first_server() + local_rank
                                     : node.first_rank() + local_rank - node.servers();
}

std::vector<int> devices_of(const wire::Node& node, int local_rank) {
  const auto& ids = node.devices(local_rank).ids();
  return {ids.begin(), ids.end()};
}

void add_rank(wire::Node* node, const std::vector<int>& devices, int port) {
  node->add_devices()->mutable_ids()->Add(devices.begin(), devices.end());
  node->add_ports(port);
  node->set_local_world_size(node->local_world_size() + 1);
}

void number_ranks(World* world) {
  int node_rank = 0, world_size = 0, servers = 0;
  for (wire::Node& node : *world->mutable_nodes()) {
    node.set_node_rank(node_rank++);
    node.set_first_rank(world_size);
    node.set_first_server(servers);
    world_size += trainers(node);
    servers += node.servers();
  }
  world->set_world_size(world_size);
  world->set_servers(servers);
}

const char* name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::SUCCESS:
      return "success";
    case Verdict::RANK_FAILED:
      return "rank failed";
    case Verdict::NODE_LOST:
      return "node lost";
    case Verdict::HANG:
      return "hang";
    case Verdict::STOPPED:
      return "stopped";
    case Verdict::NO_PROGRESS:
      return "no progress";
    case Verdict::RESIZED:
      return "resized";
    default:  // a peer's
      return "?";
  }
}

bool failed(const RankExit& exit) { return exit.code() != 0 || exit.signal() != 0; }

bool succeeded(const Verdict& verdict) { return verdict.kind() == Verdict::SUCCESS; }

int exit_code_for(const Verdict& verdict) {
  switch (verdict.kind()) {
    case Verdict::SUCCESS:
      return 0;
    case Verdict::RANK_FAILED:
      return verdict.exit().signal() != 0 ? 128 + verdict.exit().signal() : verdict.exit().code();
    case Verdict::NODE_LOST:
      return kExitNodeLost;
    case Verdict::HANG:
      return kExitHang;
    case Verdict::STOPPED:
      return 128 + verdict.signal();
    case Verdict::NO_PROGRESS:
      return kExitNoProgress;
    default:
      return 1;
  }
}

wire::HostMessage join_progress(std::string line) {
  wire::HostMessage message;
  message.mutable_progress()->set_line(std::move(line));
  return message;
}

wire::HostMessage peer_event(PeerEvent::Kind kind, int node_rank, std::string node,
                             std::string line) {
  wire::HostMessage message;
  PeerEvent& event = *message.mutable_peer();
  event.set_kind(kind);
  event.set_node_rank(node_rank);
  event.set_node(std::move(node));
  event.set_line(std::move(line));
  return message;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string node_label(const std::string& address, const std::string& hostname) {
  const bool loopback = address.starts_with("127.") || address == "::1";
  const bool said = address == hostname || address.starts_with(hostname + ".");
  return hostname.empty() || loopback || said ? address : address + ", host " + hostname;
}

std::string headline(const RankExit& exit, int world_size, int nnodes) {
  std::string text = (exit.server() ? "server " : "rank ") + std::to_string(exit.rank()) + " of " +
                     std::to_string(world_size);
  text += exit.signal() != 0 ? " was killed by " + signal_name(exit.signal())
                             : " exited with " + std::to_string(exit.code());
  const std::string& why = exit.cause().empty() ? exit.note() : exit.cause();
  if (!why.empty()) text += ": " + why;
  if (exit.log_path().empty()) return text;
  text += " (" + exit.log_path();
  if (nnodes > 1) text += " on node " + std::to_string(exit.node_rank());
  return text + ")";
}

std::string describe(const RankExit& exit, const std::string& node) {
  std::string text = (exit.server() ? "server " : "rank ") + std::to_string(exit.rank()) +
                     " (local rank " + std::to_string(exit.local_rank()) + ") on node " +
                     std::to_string(exit.node_rank()) + " (" + node + ") ";
  text += exit.signal() != 0 ? "was killed by " + signal_name(exit.signal())
                             : "exited with code " + std::to_string(exit.code());
  text += format_printf(" after %.1f s", static_cast<double>(exit.ran_for_ms()) / 1000);
  if (!exit.note().empty()) text += " (" + exit.note() + ")";
  return text;
}

}  // namespace fleet
