#include <algorithm>
#include <map>
#include <vector>

#include "node/process_tree.h"
#include "node/stack_collector.h"

namespace fleet {
namespace {

constexpr size_t kMaxGroups = 32;
// Kept around the last call that was entered. A GPU's calls are issued a whole step ahead, so that
// the one in which it waits is among many.
constexpr int64_t kCallsBefore = 2, kCallsAfter = 1, kCallsOfDevice = 128;

bool is_message(const CollectiveRecord& call) {
  return call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
}

GroupCall message_of(const CollectiveRecord& call) {
  GroupCall message;
  message.set_sequence(call.sequence);
  message.set_kind(std::string(name_of(call.kind)));
  message.set_size(call.bytes);
  message.set_purpose(std::string(call.purpose.view()));
  message.set_state(call.state == CollectiveState::kDone      ? GroupCall::DONE
                    : call.state == CollectiveState::kStarted ? GroupCall::STARTED
                                                              : GroupCall::ISSUED);
  if (call.peer >= 0 && !is_message(call)) message.set_root(call.peer);
  return message;
}

GroupCalls header_of(const CollectiveGroup& group, const std::vector<int>& ranks) {
  GroupCalls calls;
  calls.set_name(group.name);
  for (const RankRun& run : runs_of(ranks)) {
    for (const int number : {run.first, run.step, run.count}) calls.add_ranks(number);
  }
  calls.set_ordinal(group.ordinal);
  return calls;
}

// `calls`: this group's, by number. `to` knows how far the rank is.
void add_calls(const CollectiveGroup& group, const std::vector<CollectiveRecord>& calls,
               int64_t now_ns, GroupCalls* to) {
  const int64_t entered = to->entered();
  const int64_t first = entered - (group.device ? kCallsOfDevice : kCallsBefore);
  for (const CollectiveRecord& call : calls) {
    if (call.sequence < first || call.sequence > entered + kCallsAfter) continue;
    *to->add_calls() = message_of(call);
    if (call.sequence != entered || call.state == CollectiveState::kDone) continue;
    const int64_t since = group.device ? call.issued_ns : call.started_ns;
    to->set_waiting_ms(std::max<int64_t>(now_ns - since, 0) / 1'000'000);
  }
}

void add_together(const CollectiveGroup& group, const std::vector<CollectiveRecord>& calls,
                  int64_t now_ns, RankCollectives* to) {
  if (group.issued == 0) return;
  GroupCalls& message = *to->add_groups() = header_of(group, group.ranks);
  message.set_entered(group.device ? group.issued : group.started);
  if (!group.device) message.set_done(group.done);
  // If its slot in the log was needed for later calls, it has waited through many of them.
  if (group.device || group.started > group.done) message.set_waiting_ms(INT32_MAX);
  add_calls(group, calls, now_ns, &message);
}

// Calls from one rank to another, which have numbers of their own.
void add_messages(const CollectiveGroup& group, int from, int to,
                  const std::vector<CollectiveRecord>& calls, int64_t now_ns,
                  RankCollectives* all) {
  GroupCalls& message = *all->add_groups() = header_of(group, {from, to});
  message.set_message(true);
  int64_t entered = calls.front().sequence - 1, done = entered;
  for (const CollectiveRecord& call : calls) {
    if (group.device || call.state != CollectiveState::kIssued) entered = call.sequence;
    if (call.state == CollectiveState::kDone) done = call.sequence;
  }
  message.set_entered(entered);
  if (!group.device) message.set_done(done);
  add_calls(group, calls, now_ns, &message);
}

}  // namespace

RankCollectives calls_of(const CollectiveSnapshot& snapshot, int rank, int64_t now_ns) {
  std::vector<CollectiveGroup> groups = snapshot.groups;
  std::stable_partition(groups.begin(), groups.end(),
                        [](const CollectiveGroup& group) { return !group.closed; });
  if (groups.size() > kMaxGroups) groups.resize(kMaxGroups);
  RankCollectives all;
  all.set_rank(rank);
  for (const CollectiveGroup& group : groups) {
    std::vector<CollectiveRecord> together;
    std::map<std::pair<int, int>, std::vector<CollectiveRecord>> messages;
    for (const CollectiveRecord& call : snapshot.calls) {
      if (call.group != group.id) continue;
      if (!is_message(call)) {
        together.push_back(call);
      } else if (call.kind == CollectiveKind::kSend) {
        messages[{rank, call.peer}].push_back(call);
      } else {
        messages[{call.peer, rank}].push_back(call);
      }
    }
    add_together(group, together, now_ns, &all);
    for (const auto& [ends, calls] : messages) {
      add_messages(group, ends.first, ends.second, calls, now_ns, &all);
    }
  }
  return all;
}

char writer_state(const CollectiveSnapshot& snapshot, char rank_state) {
  if (!snapshot.same_pid_names) return rank_state;
  const char state = process_state(snapshot.pid);
  return state == '?' || state == 'Z' ? 'X' : state;
}

}  // namespace fleet
