#include <string>

#include "base/hash.h"
#include "train/step_trace.h"

namespace fleet {

CollectiveTrace& CollectiveTrace::of_process() {
  static auto* trace = new CollectiveTrace;
  return *trace;
}

std::string collective_key(const CollectiveGroup& group, int sender, int receiver) {
  std::string key = group.name + "/" + std::to_string(group.ordinal) + "/ranks";
  constexpr size_t kShown = 16;
  if (group.ranks.size() <= kShown) {
    for (const int rank : group.ranks) key += " " + std::to_string(rank);
  } else {
    std::string all;
    for (const int rank : group.ranks) all += std::to_string(rank) + " ";
    key += " " + std::to_string(group.ranks.size()) + ": " + std::to_string(hash_text(all));
  }
  if (sender >= 0) key += "/" + std::to_string(sender) + " to " + std::to_string(receiver);
  return key;
}

void CollectiveTrace::record(TraceRecorder* recorder, int rank) {
  {
    const MutexLock lock(mutex_);
    recorder_ = recorder;
    rank_ = rank;
    groups_.clear();
    tracks_.clear();
    names_.clear();
  }
  CollectiveLog::of_process().set_listener(recorder ? this : nullptr);
}

uint32_t CollectiveTrace::track_of(const CollectiveGroup& group) {
  const auto [at, added] = tracks_.try_emplace(group.id);
  if (added) at->second = recorder_->add_track("collectives: " + group.name);
  return at->second;
}

uint32_t CollectiveTrace::name_of_call(const CollectiveRecord& call, const CollectiveGroup& group) {
  const std::string purpose(call.purpose.view());
  const auto [at, added] = names_.try_emplace({group.id, call.kind, call.peer, purpose});
  if (!added) return at->second;
  const bool sends = call.kind == CollectiveKind::kSend;
  const bool message = sends || call.kind == CollectiveKind::kRecv;
  const int sender = message ? (sends ? rank_ : call.peer) : -1;
  at->second = recorder_->add_name("collective", name_of(call.kind), purpose,
                                   collective_key(group, sender, sends ? call.peer : rank_));
  return at->second;
}

void CollectiveTrace::done(const CollectiveRecord& call) {
  const MutexLock lock(mutex_);
  if (!recorder_) return;
  const auto [group, added] = groups_.try_emplace(call.group);
  if (added) group->second = CollectiveLog::of_process().group_with_id(call.group);
  group->second.id = call.group;
  recorder_->add(track_of(group->second), name_of_call(call, group->second), call.started_ns,
                 call.done_ns, call.sequence);
}

}  // namespace fleet
