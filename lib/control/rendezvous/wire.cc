#include "rendezvous/wire.h"

#include <map>
#include <tuple>

namespace fleet {
namespace {

constexpr size_t kMaxTail = 64 << 10, kMaxCause = 4 << 10;
// A stack that others refer to is copied for each of them.
constexpr size_t kMaxFrames = 64, kMaxFrame = 256, kMaxMissing = 1 << 10;
constexpr size_t kMaxErrorMessage = 4 << 10, kMaxCallstack = 16 << 10;
// Every node's Join has the whole list of --ips. Longer lists travel as a digest, or the joins of a
// large job would grow quadratically.
constexpr size_t kMaxListed = 64;

void fill(const Welcome& welcome, wire::HostMessage* to) {
  to->mutable_welcome()->set_heartbeat_interval_ms(welcome.heartbeat_interval.count());
  to->mutable_welcome()->set_max_silence_ms(welcome.max_silence.count());
}
void fill(const JoinProgress& progress, wire::HostMessage* to) {
  to->mutable_progress()->set_line(progress.line);
}
void fill(const Refusal& refusal, wire::HostMessage* to) {
  *to->mutable_refused() = to_wire(refusal.error);
}
void fill(const Assignment& assignment, wire::HostMessage* to) {
  to->mutable_assignment()->set_node_rank(assignment.node_rank);
}
void fill(const PeerEvent& event, wire::HostMessage* to) {
  auto* peer = to->mutable_peer();
  peer->set_lost(event.kind == PeerEvent::Kind::kLost);
  peer->set_straggler(event.kind == PeerEvent::Kind::kStraggler);
  peer->set_node_rank(event.node_rank);
  peer->set_node(event.node);
  peer->set_line(event.line);
}
void fill(const StopCommand& command, wire::HostMessage* to) {
  to->mutable_stop()->set_signal(command.signal);
  to->mutable_stop()->set_node_rank(command.node_rank);
  to->mutable_stop()->set_node(command.node);
  to->mutable_stop()->set_kill(command.kill);
  if (command.grace) {
    to->mutable_stop()->set_grace_ms(static_cast<int>(command.grace->count()));
  }
}
void fill(const SignalCommand& command, wire::HostMessage* to) {
  to->mutable_signal()->set_signal(command.signal);
  to->mutable_signal()->set_node_rank(command.node_rank);
}
void fill(const StackReport& report, wire::HostMessage* to) {
  *to->mutable_report() = to_wire(report);
}
void fill(const StackCommand& command, wire::HostMessage* to) {
  to->mutable_stacks()->set_node_rank(command.node_rank);
  to->mutable_stacks()->set_hang(command.hang);
}
void fill(const GenerationResult& end, wire::GenerationResult* out) {
  out->set_generation(end.generation);
  out->set_nnodes(end.nnodes);
  out->set_world_size(end.world_size);
  out->set_kind(static_cast<wire::Verdict::Kind>(end.kind));
  out->set_message(end.message);
  out->set_ran_for_ms(end.ran_for.count());
  out->set_step(end.step);
}
void fill(const Verdict& verdict, wire::Verdict* out) {
  out->set_kind(static_cast<wire::Verdict::Kind>(verdict.kind));
  out->set_generation(verdict.generation);
  out->set_node_rank(verdict.node_rank);
  out->set_node(verdict.node);
  out->set_hostname(verdict.hostname);
  out->set_signal(verdict.signal);
  if (names_rank(verdict)) *out->mutable_exit() = to_wire(verdict.exit);
  out->set_message(verdict.message);
  out->set_restarts(verdict.restarts);
  for (const GenerationResult& end : verdict.history) fill(end, out->add_history());
}
void fill(const Verdict& verdict, wire::HostMessage* to) { fill(verdict, to->mutable_verdict()); }
void fill(const RestartCommand& command, wire::HostMessage* to) {
  auto* out = to->mutable_restart();
  out->set_generation(command.generation);
  fill(command.cause, out->mutable_cause());
  fill(command.end, out->mutable_end());
  out->set_restart(command.restart);
  out->set_of(command.of);
}

void fill(const WorldId& name, wire::WorldId* out) {
  out->set_generation(name.generation);
  out->set_leader(name.leader);
}

// Created by the client itself: never sent.
void fill(const HostLost&, wire::HostMessage*) {}
void fill(const TakeOver&, wire::HostMessage*) {}

GenerationResult from_wire(const wire::GenerationResult& in) {
  return {in.generation(), in.nnodes(),
          in.world_size(), static_cast<VerdictKind>(in.kind()),
          in.message(),    std::chrono::milliseconds(in.ran_for_ms()),
          in.step()};
}

Verdict from_wire(const wire::Verdict& in) {
  Verdict verdict;
  verdict.kind = static_cast<VerdictKind>(in.kind());
  verdict.generation = in.generation();
  verdict.node_rank = in.node_rank();
  verdict.node = in.node();
  verdict.hostname = in.hostname();
  verdict.signal = in.signal();
  if (in.has_exit()) verdict.exit = fleet::from_wire(in.exit());
  verdict.message = in.message();
  verdict.restarts = in.restarts();
  for (const wire::GenerationResult& end : in.history()) verdict.history.push_back(from_wire(end));
  return verdict;
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

wire::RankExit to_wire(const RankExit& exit) {
  wire::RankExit out;
  out.set_rank(exit.rank);
  out.set_local_rank(exit.local_rank);
  out.set_node_rank(exit.node_rank);
  out.set_code(exit.code);
  out.set_signal(exit.signal);
  out.set_killed_by_us(exit.killed_by_us);
  out.set_ran_for_ms(exit.ran_for.count());
  out.set_log_path(exit.log_path);
  out.set_tail(exit.tail.size() > kMaxTail ? exit.tail.substr(exit.tail.size() - kMaxTail)
                                           : exit.tail);
  out.set_cause(exit.cause.substr(0, kMaxCause));
  out.set_note(exit.note);
  out.set_server(exit.server);
  out.set_oom(exit.oom);
  out.set_at_ns(exit.at_ns);
  out.set_at_error_ns(exit.at_error_ns);
  if (!exit.error.empty()) {
    auto* error = out.mutable_error();
    error->set_message(exit.error.message.substr(0, kMaxErrorMessage));
    const std::string& stack = exit.error.callstack;  // the innermost calls come last
    error->set_callstack(stack.substr(stack.size() - std::min(stack.size(), kMaxCallstack)));
    error->set_unix_time(exit.error.unix_time);
  }
  return out;
}

RankExit from_wire(const wire::RankExit& in) {
  RankExit exit;
  exit.rank = in.rank();
  exit.local_rank = in.local_rank();
  exit.node_rank = in.node_rank();
  exit.code = in.code();
  exit.signal = in.signal();
  exit.killed_by_us = in.killed_by_us();
  exit.ran_for = std::chrono::milliseconds(in.ran_for_ms());
  exit.log_path = in.log_path();
  exit.tail = in.tail().substr(0, kMaxTail);
  exit.cause = in.cause().substr(0, kMaxCause);
  exit.note = in.note();
  exit.server = in.server();
  exit.oom = in.oom();
  exit.at_ns = in.at_ns();
  exit.at_error_ns = in.at_error_ns();
  exit.error = {in.error().message().substr(0, kMaxErrorMessage),
                in.error().callstack().substr(0, kMaxCallstack), in.error().unix_time()};
  return exit;
}

wire::Stall to_wire(const RankStall& stall) {
  wire::Stall out;
  out.set_rank(stall.rank);
  out.set_server(stall.server);
  out.set_local_rank(stall.local_rank);
  out.set_quiet_for_ms(stall.quiet_for.count());
  out.set_log_path(stall.log_path);
  out.set_step(stall.step);
  return out;
}

RankStall from_wire(const wire::Stall& in) {
  return {in.rank(),     in.server(), in.local_rank(), std::chrono::milliseconds(in.quiet_for_ms()),
          in.log_path(), in.step()};
}

wire::StepReport to_wire(const std::vector<RankSteps>& rank_steps) {
  wire::StepReport out;
  for (const RankSteps& one : rank_steps) {
    auto* added = out.add_ranks();
    added->set_rank(one.rank);
    added->set_local_rank(one.local_rank);
    added->set_steps(one.steps);
    added->set_step(one.step);
    added->set_step_at_ns(one.step_at_ns);
    added->set_waited_ns(one.waited_ns);
  }
  return out;
}

std::vector<RankSteps> from_wire(const wire::StepReport& in) {
  std::vector<RankSteps> rank_steps;
  for (const wire::RankSteps& one : in.ranks()) {
    rank_steps.push_back({one.rank(), one.local_rank(), -1, one.steps(), one.step(),
                          one.step_at_ns(), one.waited_ns()});
  }
  return rank_steps;
}

// Stacks that ranks share are sent once: those of a large job would not fit a message.
wire::Stacks to_wire(const std::vector<RankStack>& stacks) {
  wire::Stacks out;
  std::map<std::tuple<const std::vector<std::string>&, const std::string&>, uint32_t> known;
  for (const RankStack& stack : stacks) {
    auto* added = out.add_ranks();
    added->set_rank(stack.rank);
    added->set_server(stack.server);
    added->set_local_rank(stack.local_rank);
    added->set_state(stack.state);
    added->set_channel(stack.channel);
    added->set_node_rank(stack.node_rank);
    const auto number = static_cast<uint32_t>(out.ranks_size());
    const auto [like, is_new] = known.try_emplace({stack.frames, stack.missing}, number);
    if (!is_new) {
      added->set_like(like->second);
      continue;
    }
    for (const std::string& frame : stack.frames) added->add_frames(frame);
    added->set_missing(stack.missing);
  }
  return out;
}

std::vector<RankStack> from_wire(const wire::Stacks& in) {
  std::vector<RankStack> stacks;
  for (const wire::RankStack& one : in.ranks()) {
    std::vector<std::string> frames;
    for (const std::string& frame : one.frames()) {
      if (frames.size() < kMaxFrames) frames.push_back(frame.substr(0, kMaxFrame));
    }
    stacks.push_back({one.rank(), one.server(), one.local_rank(), one.node_rank(),
                      static_cast<char>(one.state()), one.channel(), std::move(frames),
                      one.missing().substr(0, kMaxMissing)});
    if (one.like() == 0 || one.like() >= stacks.size()) continue;
    stacks.back().frames = stacks[one.like() - 1].frames;
    stacks.back().missing = stacks[one.like() - 1].missing;
  }
  return stacks;
}

wire::StackReport to_wire(const StackReport& report) {
  wire::StackReport out;
  *out.mutable_stacks() = to_wire(report.stacks);
  for (const int node : report.silent) out.add_silent(node);
  return out;
}

StackReport from_wire(const wire::StackReport& in) {
  return {from_wire(in.stacks()), {in.silent().begin(), in.silent().end()}};
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
static_assert(static_cast<int>(VerdictKind::kSuccess) == wire::Verdict::SUCCESS &&
              static_cast<int>(VerdictKind::kRankFailed) == wire::Verdict::RANK_FAILED &&
              static_cast<int>(VerdictKind::kNodeLost) == wire::Verdict::NODE_LOST &&
              static_cast<int>(VerdictKind::kHang) == wire::Verdict::HANG &&
              static_cast<int>(VerdictKind::kStopped) == wire::Verdict::STOPPED &&
              static_cast<int>(VerdictKind::kNoProgress) == wire::Verdict::NO_PROGRESS &&
              static_cast<int>(VerdictKind::kResized) == wire::Verdict::RESIZED);

wire::HostMessage to_wire(const HostEvent& event) {
  wire::HostMessage message;
  if (const auto* welcome = std::get_if<Welcome>(&event)) {
    fill(*welcome, &message);
  } else if (const auto* start = std::get_if<Start>(&event)) {
    message.mutable_start()->set_generation(start->generation);
  } else {
    std::visit([&](const auto& one) { fill(one, &message); }, std::get<RendezvousEvent>(event));
  }
  return message;
}

HostEvent from_wire(const wire::HostMessage& message) {
  switch (message.kind_case()) {
    case wire::HostMessage::kWelcome:
      return Welcome{std::chrono::milliseconds(message.welcome().heartbeat_interval_ms()),
                     std::chrono::milliseconds(message.welcome().max_silence_ms())};
    case wire::HostMessage::kRefused:
      return Refusal{from_wire(message.refused())};
    case wire::HostMessage::kProgress:
      return JoinProgress{message.progress().line()};
    case wire::HostMessage::kAssignment:
      return from_wire(message.assignment());
    case wire::HostMessage::kPeer:
      return PeerEvent{message.peer().straggler() ? PeerEvent::Kind::kStraggler
                       : message.peer().lost()    ? PeerEvent::Kind::kLost
                                                  : PeerEvent::Kind::kFinished,
                       message.peer().node_rank(), message.peer().node(), message.peer().line()};
    case wire::HostMessage::kStop:
      return StopCommand{message.stop().signal(), message.stop().node_rank(), message.stop().node(),
                         message.stop().kill(), grace_of(message.stop())};
    case wire::HostMessage::kSignal:
      return SignalCommand{message.signal().signal(), message.signal().node_rank()};
    case wire::HostMessage::kReport:
      return from_wire(message.report());
    case wire::HostMessage::kStacks:
      return StackCommand{message.stacks().node_rank(), message.stacks().hang()};
    case wire::HostMessage::kVerdict:
      return from_wire(message.verdict());
    case wire::HostMessage::kRestart: {
      const auto& in = message.restart();
      return RestartCommand{in.generation(), from_wire(in.cause()), from_wire(in.end()),
                            in.restart(), in.of()};
    }
    case wire::HostMessage::kStart:
      return Start{message.start().generation()};
    case wire::HostMessage::kHeartbeat:
    case wire::HostMessage::KIND_NOT_SET:
      break;
  }
  throw Error(ErrorCode::kInternal, "the rendezvous sent a message of an unknown kind");
}

}  // namespace fleet
