#include "transport/validate.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace fleet {
namespace {

// A node beyond these limits is broken or hostile.
constexpr size_t kMaxText = 1024;
constexpr int kMaxRanksPerNode = 4096, kMaxConfigEntries = 256;
constexpr size_t kMaxTail = 64 << 10, kMaxCause = 4 << 10;
constexpr int kMaxStackFrames = 64;
constexpr size_t kMaxPythonFrame = 1 << 10;
constexpr size_t kMaxFrame = 256, kMaxMissing = 1 << 10;
constexpr int kMaxCollectives = 4096, kMaxGroups = 256, kMaxGroupCalls = 256, kMaxRuns = 64;
constexpr int kMaxWaits = 16, kMaxReplacements = 100;
constexpr int64_t kMaxRanks = 1 << 20;
constexpr size_t kMaxErrorMessage = 4 << 10, kMaxCallstack = 16 << 10;

void keep_first(size_t most, std::string* text) { text->resize(std::min(text->size(), most)); }
void keep_last(size_t most, std::string* text) {
  text->erase(0, text->size() - std::min(text->size(), most));
}

[[noreturn]] void refuse_message(const std::string& what) {
  throw Error(ErrorCode::kUsage, "a message of another program or version: " + what, {},
              "install the same version everywhere");
}

template <typename Message>
void require_kind(const Message& message) {
  if (message.kind_case() == Message::KIND_NOT_SET) refuse_message("its kind is unknown");
}
void require_known(bool known, const char* name, int value) {
  if (!known) refuse_message(std::string(name) + " " + std::to_string(value) + " is unknown");
}
void require_natural(int64_t number, const char* name) {
  if (number < 0) refuse_message(std::string(name) + " is negative");
}
void require_signal(int signal) {
  if (signal <= 0 || signal > SIGRTMAX) refuse_message("signal " + std::to_string(signal));
}
template <typename Ranks>
void require_local_ranks(const Ranks& ranks) {
  for (const auto& rank : ranks) require_natural(rank.local_rank(), "a local rank");
}

void require_known(wire::Verdict::Kind kind) {
  require_known(wire::Verdict::Kind_IsValid(kind), "verdict", kind);
}
void validate(const wire::Verdict& verdict) {
  require_known(verdict.kind());
  for (const wire::GenerationResult& end : verdict.history()) require_known(end.kind());
}

void cut(wire::Bottleneck* bottleneck) {
  keep_first(kMaxText, bottleneck->mutable_line());
  for (wire::Cause& cause : *bottleneck->mutable_causes()) {
    require_known(wire::Cause::Kind_IsValid(cause.kind()), "cause", cause.kind());
    keep_first(kMaxText, cause.mutable_action());
  }
}

template <typename Items>
void keep_first_items(int most, Items* items) {
  if (items->size() > most) items->DeleteSubrange(most, items->size() - most);
}

void cut(wire::GroupCall* call) {
  keep_first(kMaxFrame, call->mutable_kind());
  keep_first(kMaxFrame, call->mutable_purpose());
}

void cut(wire::GroupCalls* calls) {
  keep_first(kMaxFrame, calls->mutable_name());
  keep_first_items(kMaxGroupCalls, calls->mutable_calls());
  for (wire::GroupCall& call : *calls->mutable_calls()) cut(&call);
  // The ranks are enumerated.
  int64_t ranks = 0;
  for (int i = 2; i < calls->ranks_size(); i += 3) ranks += std::max(calls->ranks(i), 0);
  if (calls->ranks_size() > 3 * kMaxRuns || ranks > kMaxRanks)
    refuse_message("a group is too large");
}

void cut_waits(google::protobuf::RepeatedPtrField<wire::CollectiveWait>* waits) {
  keep_first_items(kMaxWaits, waits);
  for (wire::CollectiveWait& wait : *waits) {
    keep_first(kMaxText, wait.mutable_line());
    keep_first(kMaxFrame, wait.mutable_group());
    cut(wait.mutable_call());
  }
}

void cut(google::protobuf::RepeatedPtrField<wire::RankEnding>* endings) {
  keep_first_items(kMaxRanksPerNode, endings);
  for (wire::RankEnding& ending : *endings) {
    keep_first(kMaxText, ending.mutable_log_path());
    keep_first(kMaxText, ending.mutable_error());
  }
}

// Shortens the hang in a StackReport or Verdict.
template <typename Message>
void cut_hang(Message* message) {
  cut_waits(message->mutable_waits());
  keep_first_items(kMaxWaits, message->mutable_notes());
  for (std::string& note : *message->mutable_notes()) keep_first(kMaxText, &note);
}

void validate(const wire::Join& join) {
  const wire::JobConfig& job = join.job();
  const wire::Node& node = join.node();
  const bool long_text =
      std::ranges::any_of(std::array{&job.job_id(), &job.version(), &node.address(),
                                     &node.hostname(), &join.instance()},
                          [](const std::string* text) { return text->size() > kMaxText; });
  const int ranks = std::max({node.ports_size(), node.devices_size(), node.ranks_size()});
  const int entries = std::max(job.agreed_config_size(), job.fingerprint_size());
  if (long_text || ranks > kMaxRanksPerNode || entries > kMaxConfigEntries)
    refuse_message("it exceeds the limits of a node");
}

void validate(const wire::StopRequest& stop) {
  require_signal(stop.signal());
  require_natural(stop.grace_ms(), "a grace time");
}

void validate(const wire::TraceRequest& request) {
  require_known(wire::TraceRequest::Kind_IsValid(request.kind()), "request for a trace",
                request.kind());
  require_natural(request.steps(), "a number of steps");
  require_natural(request.index(), "a rank's place");
}

}  // namespace

void cut(wire::RankExit* exit) {
  keep_last(kMaxTail, exit->mutable_tail());
  keep_first(kMaxCause, exit->mutable_cause());
  if (exit->at_error_ns() < 0) exit->clear_at_error_ns();
  if (!exit->has_error()) return;
  keep_first(kMaxErrorMessage, exit->mutable_error()->mutable_message());
  // The innermost calls come last.
  keep_last(kMaxCallstack, exit->mutable_error()->mutable_callstack());
}

void cut(wire::Stacks* stacks) {
  keep_first_items(kMaxCollectives, stacks->mutable_collectives());
  cut(stacks->mutable_endings());
  for (wire::RankCollectives& rank : *stacks->mutable_collectives()) {
    keep_first(kMaxText, rank.mutable_missing());
    keep_first(kMaxText, rank.mutable_dump());
    keep_first_items(kMaxGroups, rank.mutable_groups());
    for (wire::GroupCalls& calls : *rank.mutable_groups()) cut(&calls);
  }
  for (wire::StackCluster& cluster : *stacks->mutable_clusters()) {
    keep_first_items(kMaxStackFrames, cluster.mutable_frames());
    for (std::string& frame : *cluster.mutable_frames()) keep_first(kMaxFrame, &frame);
    keep_first(kMaxMissing, cluster.mutable_missing());
    keep_first_items(kMaxStackFrames, cluster.mutable_python_frames());
    for (std::string& frame : *cluster.mutable_python_frames()) keep_first(kMaxPythonFrame, &frame);
    keep_first(kMaxMissing, cluster.mutable_python_missing());
  }
}

namespace {

void cut(wire::StackReport* report) {
  fleet::cut(report->mutable_stacks());
  cut_hang(report);
}

void cut(wire::Verdict* verdict) {
  if (verdict->has_exit()) fleet::cut(verdict->mutable_exit());
  if (verdict->has_bottleneck()) cut(verdict->mutable_bottleneck());
  cut_hang(verdict);
  cut(verdict->mutable_endings());
  keep_first_items(kMaxReplacements, verdict->mutable_replacements());
  for (wire::Replacement& one : *verdict->mutable_replacements()) {
    fleet::cut(one.mutable_exit());
    keep_first(kMaxCause, one.mutable_message());
  }
}

}  // namespace

void validate(wire::NodeMessage* message) {
  require_kind(*message);
  if (message->has_join()) validate(message->join());
  if (message->has_exit()) cut(message->mutable_exit());
  if (message->has_stacks()) cut(message->mutable_stacks());
  if (message->has_trace_request()) validate(message->trace_request());
}

void validate(wire::HostMessage* message) {
  require_kind(*message);
  if (message->has_trace_request()) validate(message->trace_request());
  for (const wire::Verdict* verdict : {&message->verdict(), &message->restart().cause()}) {
    validate(*verdict);
  }
  require_known(message->restart().end().kind());
  for (const wire::GenerationResult& end : message->assignment().history()) {
    require_known(end.kind());
  }
  if (message->has_verdict()) cut(message->mutable_verdict());
  if (message->has_restart()) cut(message->mutable_restart()->mutable_cause());
  if (message->has_replace()) cut(message->mutable_replace()->mutable_exit());
  if (message->has_report()) cut(message->mutable_report());
  if (message->live().has_bottleneck()) cut(message->mutable_live()->mutable_bottleneck());
  const auto kind = message->peer().kind();
  require_known(wire::PeerEvent::Kind_IsValid(kind), "news of a node", kind);
}

void validate(wire::GuardianCommand* message) {
  require_kind(*message);
  for (const wire::RankCommand& rank : message->spawn().ranks()) {
    if (rank.argv().empty()) refuse_message("a rank has no program");
  }
  require_local_ranks(message->spawn().ranks());
  require_natural(message->spawn().settings().hang_timeout_ms(), "a hang timeout");
  require_natural(message->stop().grace_ms(), "a grace time");
  require_natural(message->collect_stacks().limit_ms(), "a limit");
  require_natural(message->collect_stacks().dump_limit_ms(), "a limit for dumps");
  require_natural(message->service_bytes().local_rank(), "a local rank");
  if (message->has_trace()) validate(message->trace());
}

void validate(wire::GuardianEvent* message) {
  require_kind(*message);
  for (const int local_rank : {message->started().local_rank(), message->ended().local_rank(),
                               message->stalled().local_rank(), message->stopped().local_rank(),
                               message->service_bytes().local_rank()}) {
    require_natural(local_rank, "a local rank");
  }
  require_local_ranks(message->progress().ranks());
  for (const auto& cluster : message->stacks().clusters()) require_local_ranks(cluster.ranks());
  require_local_ranks(message->stacks().collectives());
  if (message->has_ended()) cut(message->mutable_ended());
  if (message->has_stacks()) cut(message->mutable_stacks());
}

void validate(wire::ControlRequest* message) {
  require_kind(*message);
  if (message->has_stop()) validate(message->stop());
  if (message->has_trace()) validate(message->trace());
}

void validate(wire::ControlReply* message) {
  require_kind(*message);
  if (message->has_stacks()) cut(message->mutable_stacks());
  if (message->live().has_bottleneck()) cut(message->mutable_live()->mutable_bottleneck());
}

void validate(const wire::ClientMessage& message) {
  require_kind(message);
  if (!message.has_stop() && !message.has_stop_named()) return;
  const wire::StopRequest& stop = message.has_stop() ? message.stop() : message.stop_named().how();
  constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  const bool stops = std::ranges::find(kStops, stop.signal()) != std::end(kStops);
  if (!stops) refuse_message("signal " + std::to_string(stop.signal()) + " stops no job");
  validate(stop);
}

void validate(const wire::FleetdMessage& message) {
  require_kind(message);
  validate(message.ended().verdict().verdict());
  for (const wire::JobInfo& job : message.jobs().jobs()) validate(job);
}

void validate(const wire::JobInfo& job) {
  const wire::JobRecord& record = job.record();
  require_known(wire::JobInfo::Phase_IsValid(job.phase()), "phase", job.phase());
  validate(record.verdict().verdict());
  for (const double time : {record.started(), job.ended(), record.verdict().unix_time()}) {
    if (!std::isfinite(time)) refuse_message("a time is not a number");
  }
}

}  // namespace fleet
