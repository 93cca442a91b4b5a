#include "rendezvous/wire.h"

#include <map>
#include <tuple>

namespace fleet {
namespace {

constexpr size_t kMaxTail = 64 << 10, kMaxCause = 4 << 10;
// A stack that others refer to is copied for each of them.
constexpr int kMaxFrames = 64;
constexpr size_t kMaxFrame = 256, kMaxMissing = 1 << 10;
constexpr size_t kMaxErrorMessage = 4 << 10, kMaxCallstack = 16 << 10;
// Every node's Join has the whole list of --ips. Longer lists travel as a digest, or the joins of a
// large job would grow quadratically.
constexpr size_t kMaxListed = 64;

void fill(const WorldId& id, wire::WorldId* out) {
  out->set_generation(id.generation);
  out->set_leader(id.leader);
}

void keep_first(size_t most, std::string* text) { text->resize(std::min(text->size(), most)); }
void keep_last(size_t most, std::string* text) {
  text->erase(0, text->size() - std::min(text->size(), most));
}

}  // namespace

wire::Join to_wire(const NodeInfo& info) {
  wire::Join join;
  join.set_job_id(info.job.job_id);
  join.set_nnodes(info.job.nnodes);
  if (info.job.addresses_digest != 0) {
    join.set_addresses_digest(info.job.addresses_digest);
  } else if (info.job.addresses.size() > kMaxListed) {
    join.set_addresses_digest(digest_of(info.job.addresses));
  } else {
    for (const auto& address : info.job.addresses) join.add_addresses(address);
  }
  join.set_version(info.job.version);
  join.set_protocol(info.job.protocol);
  for (const auto& [name, value] : info.job.agreed_config) {
    add_value(name, value, join.mutable_agreed_config());
  }
  for (const auto& [name, value] : info.job.fingerprint) {
    add_value(name, value, join.mutable_fingerprint());
  }
  join.set_allow_skew(info.job.allow_skew);
  join.set_address(info.address);
  join.set_node_rank(info.node_rank);
  join.set_hosts_rendezvous(info.hosts_rendezvous);
  put_devices(info.devices, &join);
  for (const int port : info.ports) join.add_ports(port);
  join.set_master_port(info.master_port);
  join.set_hostname(info.hostname);
  join.set_instance(info.instance);
  join.set_servers(info.servers);
  for (const int rank : info.ranks) join.add_ranks(rank);
  join.set_rdzv_port(info.rdzv_port);
  join.set_role(info.role);
  fill(info.last, join.mutable_last());
  fill(info.committed, join.mutable_committed());
  return join;
}

NodeInfo from_wire(const wire::Join& join) {
  NodeInfo info;
  info.job.job_id = join.job_id();
  info.job.nnodes = join.nnodes();
  info.job.addresses.assign(join.addresses().begin(), join.addresses().end());
  info.job.addresses_digest = join.addresses_digest();
  info.job.version = join.version();
  info.job.protocol = join.protocol();
  for (const auto& one : join.agreed_config()) info.job.agreed_config[one.name()] = one.value();
  for (const auto& one : join.fingerprint()) info.job.fingerprint[one.name()] = one.value();
  info.job.allow_skew = join.allow_skew();
  info.address = join.address();
  info.node_rank = join.node_rank();
  info.hosts_rendezvous = join.hosts_rendezvous();
  info.devices = get_devices(join);
  info.ports.assign(join.ports().begin(), join.ports().end());
  info.master_port = join.master_port();
  info.hostname = join.hostname();
  info.instance = join.instance();
  info.servers = join.servers();
  info.ranks.assign(join.ranks().begin(), join.ranks().end());
  info.rdzv_port = join.rdzv_port();
  info.role = join.role();
  info.last = {join.last().generation(), join.last().leader()};
  info.committed = {join.committed().generation(), join.committed().leader()};
  return info;
}

RankExit within_limits(RankExit exit) {
  keep_last(kMaxTail, exit.mutable_tail());
  keep_first(kMaxCause, exit.mutable_cause());
  if (exit.at_error_ns() < 0) exit.clear_at_error_ns();
  if (!exit.has_error()) return exit;
  keep_first(kMaxErrorMessage, exit.mutable_error()->mutable_message());
  // The innermost calls come last.
  keep_last(kMaxCallstack, exit.mutable_error()->mutable_callstack());
  return exit;
}

void share_frames(Stacks* stacks) {
  std::map<std::pair<std::vector<std::string>, std::string>, uint32_t> known;
  for (int i = 0; i < stacks->ranks_size(); ++i) {
    RankStack* stack = stacks->mutable_ranks(i);
    const auto [like, is_new] =
        known.try_emplace({texts(stack->frames()), stack->missing()}, static_cast<uint32_t>(i + 1));
    if (is_new) continue;
    stack->set_like(like->second);
    stack->clear_frames();
    stack->clear_missing();
  }
}

Stacks with_own_frames(const Stacks& stacks) {
  Stacks out;
  for (RankStack stack : stacks.ranks()) {
    const int earlier = out.ranks_size();
    if (stack.like() > 0 && stack.like() <= static_cast<uint32_t>(earlier)) {
      const RankStack& same = out.ranks(static_cast<int>(stack.like()) - 1);
      *stack.mutable_frames() = same.frames();
      stack.set_missing(same.missing());
    }
    stack.clear_like();
    if (stack.frames_size() > kMaxFrames) {
      stack.mutable_frames()->DeleteSubrange(kMaxFrames, stack.frames_size() - kMaxFrames);
    }
    for (std::string& frame : *stack.mutable_frames()) keep_first(kMaxFrame, &frame);
    keep_first(kMaxMissing, stack.mutable_missing());
    *out.add_ranks() = std::move(stack);
  }
  return out;
}

wire::Failure to_wire(const Error& error) {
  wire::Failure failure;
  failure.set_code(static_cast<wire::Failure::Code>(error.code()));
  failure.set_what(error.failure());
  failure.set_where(error.where());
  failure.set_next(error.next());
  return failure;
}

Error from_wire(const wire::Failure& failure) {
  const bool known = wire::Failure::Code_IsValid(failure.code());
  return Error(known ? static_cast<ErrorCode>(failure.code()) : ErrorCode::kInternal,
               failure.what(), failure.where(), failure.next());
}
static_assert(static_cast<int>(ErrorCode::kUsage) == wire::Failure::USAGE &&
              static_cast<int>(ErrorCode::kTimeout) == wire::Failure::TIMEOUT &&
              static_cast<int>(ErrorCode::kPeerLost) == wire::Failure::PEER_LOST &&
              static_cast<int>(ErrorCode::kStale) == wire::Failure::STALE &&
              static_cast<int>(ErrorCode::kInternal) == wire::Failure::INTERNAL);

wire::HostMessage within_limits(wire::HostMessage message) {
  const auto limit = [](Verdict* verdict) {
    if (verdict->has_exit()) {
      *verdict->mutable_exit() = within_limits(std::move(*verdict->mutable_exit()));
    }
  };
  if (message.has_verdict()) limit(message.mutable_verdict());
  if (message.has_restart()) limit(message.mutable_restart()->mutable_cause());
  if (message.kind_case() != wire::HostMessage::KIND_NOT_SET) return message;
  throw Error(ErrorCode::kInternal, "the rendezvous sent a message of an unknown kind");
}

}  // namespace fleet
