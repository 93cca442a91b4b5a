#include "diagnosis/collective_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/number_text.h"
#include "base/ranges.h"

namespace fleet {
namespace {

const char* name_of(CollectiveWait::Kind kind) {
  switch (kind) {
    case CollectiveWait::MISMATCH:
      return "mismatch";
    case CollectiveWait::TOGETHER:
      return "together";
    case CollectiveWait::CIRCLE:
      return "circle";
    case CollectiveWait::UNKNOWN:
      return "unknown";
    default:
      return "missing";
  }
}

constexpr int64_t kMinWaitMs = 1000;
constexpr size_t kMaxWaits = 4;

using Kind = wire::CollectiveWait;

struct Member {
  int rank = 0;
  const RankCollectives* of = nullptr;
  const GroupCalls* calls = nullptr;  // null: the rank does not have the group yet
  int64_t entered() const { return calls ? calls->entered() : 0; }
  // Calls are issued before the earlier ones are done.
  bool ahead() const { return calls && (calls->ahead() || !calls->has_done()); }
  // The call that it is in, if it waits; `least`: the last one that all members have entered.
  int64_t at(int64_t least) const {
    if (!ahead()) return entered();
    return (calls->has_done() ? calls->done() : least) + 1;
  }
  bool gone() const { return of->state() == 'X'; }
  bool stopped() const { return of->state() == 'T' || of->state() == 't'; }
  // In a call, and for long enough.
  bool unfinished() const {
    return calls && entered() > calls->done() && calls->waiting_ms() >= kMinWaitMs;
  }
  bool waits() const { return unfinished() && !gone(); }
};

using GroupKey = std::tuple<std::string, std::vector<int32_t>, int32_t, bool>;

struct GroupState {
  std::vector<Member> members;  // whose calls are known, by rank
  std::vector<Member> unknown;  // PyTorch ranks whose calls are not
  std::set<int> ranks;
  std::string name;
  bool message = false;
  int from = 0, to = 0;  // a message's sender and receiver

  // Filled in by find_missing().
  int64_t sequence = 0;               // the first call that some wait in; 0: none waits
  std::vector<int> missing, waiting;  // ranks
  // Of unknown_wait().
  std::optional<CollectiveWait> unknown_wait = {};
};

std::vector<int> ranks_of(const GroupCalls& calls) {
  std::vector<int> ranks;
  for (int i = 0; i + 2 < calls.ranks_size(); i += 3) {
    for (int k = 0; k < calls.ranks(i + 2); ++k) {
      ranks.push_back(calls.ranks(i) + k * calls.ranks(i + 1));
    }
  }
  return ranks;
}

std::vector<GroupState> groups_of(const Stacks& all) {
  std::map<int, const RankCollectives*> known;
  std::map<GroupKey, std::map<int, const GroupCalls*>> groups;
  for (const RankCollectives& rank : all.collectives()) {
    known[rank.rank()] = &rank;
    for (const GroupCalls& calls : rank.groups()) {
      GroupKey key(calls.name(), {calls.ranks().begin(), calls.ranks().end()}, calls.ordinal(),
                   calls.message());
      groups[std::move(key)][rank.rank()] = &calls;
    }
  }
  std::vector<GroupState> result;
  for (const auto& [key, members] : groups) {
    GroupState& group = result.emplace_back();
    const GroupCalls& any = *members.begin()->second;
    const std::vector<int> ranks = ranks_of(any);
    group.ranks = {ranks.begin(), ranks.end()};
    group.name = any.name();
    group.message = any.message() && ranks.size() == 2;
    if (group.message) std::tie(group.from, group.to) = std::pair(ranks[0], ranks[1]);
    for (const int rank : group.ranks) {
      const auto of = known.find(rank);
      if (of == known.end()) continue;
      const auto calls = members.find(rank);
      const Member member{rank, of->second, calls == members.end() ? nullptr : calls->second};
      const bool unknown = of->second->recorder_off() || !of->second->missing().empty() ||
                           (member.calls && member.calls->unknown());
      (unknown ? group.unknown : group.members).push_back(member);
    }
  }
  return result;
}

// A call of this rank; null if it is not known.
const GroupCall* call_of(const Member& member, int64_t sequence) {
  if (!member.calls) return nullptr;
  for (const GroupCall& call : member.calls->calls()) {
    if (call.sequence() == sequence) return &call;
  }
  return nullptr;
}

void find_missing(GroupState* group) {
  if (group->members.empty()) return;
  int64_t least = group->members[0].entered();
  for (const Member& member : group->members) least = std::min(least, member.entered());
  for (const Member& member : group->members) {
    const int64_t at = member.at(least);
    if (!member.waits() || member.entered() <= least || at <= least) continue;
    group->sequence = group->sequence == 0 ? at : std::min(group->sequence, at);
    group->waiting.push_back(member.rank);
  }
  for (const Member& member : group->members) {
    if (member.entered() < group->sequence) group->missing.push_back(member.rank);
  }
}

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(kUnits)) size /= 1024, ++unit;
  const bool whole =
      unit == 0 || size >= 100 || size == static_cast<double>(static_cast<int>(size));
  return format_printf("%.*f %s", whole ? 0 : 1, size, kUnits[unit]);
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kMaxText = 60;
  const std::string text = ranges_text(ranks);
  if (text.size() <= kMaxText) return (ranks.size() == 1 ? "rank " : "ranks ") + text;
  const size_t cut = text.rfind(',', kMaxText);
  return std::to_string(ranks.size()) + " ranks (" + text.substr(0, cut) + ",...)";
}

// The call as a member of the group knows it, preferably one that waits in it.
GroupCall describe(const GroupState& group, int64_t sequence) {
  const GroupCall* found = nullptr;
  for (const Member& member : group.members) {
    const GroupCall* call = call_of(member, sequence);
    if (call && (!found || call->state() == GroupCall::STARTED)) found = call;
  }
  GroupCall call;
  if (found) call = *found;
  call.set_sequence(sequence);
  return call;
}

// "; rank 3 is stopped (by a signal)", or nothing.
std::string state_of(const Member& member) {
  const std::string who = "rank " + std::to_string(member.rank);
  if (member.gone()) return "; the process of " + who + " is gone";
  return member.stopped() ? "; " + who + " is stopped (by a signal)" : "";
}

// The state of a missing rank and the call that it is still in, or nothing.
std::string state_of_missing(const GroupState& group, int rank) {
  for (const Member& member : group.members) {
    if (member.rank != rank) continue;
    const GroupCall* last = call_of(member, member.entered());
    if (!last || last->state() != GroupCall::STARTED) return state_of(member);
    return state_of(member) + "; rank " + std::to_string(rank) + (member.gone() ? " was" : " is") +
           " still in " + call_text(*last);
  }
  return {};
}

std::string states_of(const GroupState& group, const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    if (text.size() < 300) text += state_of_missing(group, rank);
  }
  return text;
}

// "rank 2 has not entered send #12 to rank 3 (x, 4 MiB) of group pipeline; rank 3 waits in recv"
std::string message_line(const GroupState& group, const GroupCall& call) {
  const bool sender = group.missing.front() == group.from;
  GroupCall missing = call;
  missing.set_kind(sender ? "send" : "recv");
  const int other = sender ? group.to : group.from;
  return "rank " + std::to_string(group.missing.front()) + " has not entered " +
         call_text(missing) + (sender ? " to rank " : " from rank ") + std::to_string(other) +
         " of group " + group.name + "; rank " + std::to_string(other) + " waits in " +
         (sender ? "recv" : "send");
}

std::string missing_line(const GroupState& group, const GroupCall& call) {
  if (group.message) return message_line(group, call);
  const size_t waiting = group.waiting.size();
  return ranks_text(group.missing) + (group.missing.size() == 1 ? " has" : " have") +
         " not entered " + call_text(call) + " of group " + group.name + "; " +
         (waiting == 1 ? "rank " + std::to_string(group.waiting[0]) + " waits in it"
                       : std::to_string(waiting) + " wait in it");
}

CollectiveWait missing_wait(GroupState group, const std::set<int>& blocked, bool circle) {
  CollectiveWait wait;
  if (!circle) std::erase_if(group.missing, [&](int rank) { return blocked.contains(rank); });
  wait.set_kind(circle ? Kind::CIRCLE : Kind::MISSING);
  wait.set_group(group.name);
  *wait.mutable_call() = describe(group, group.sequence);
  wait.mutable_missing()->Assign(group.missing.begin(), group.missing.end());
  wait.mutable_waiting()->Assign(group.waiting.begin(), group.waiting.end());
  wait.set_line(missing_line(group, wait.call()) + states_of(group, group.missing));
  const bool one = group.missing.size() == 1;
  if (circle) wait.set_line(wait.line() + (one ? "; it waits" : "; they wait") + " elsewhere");
  return wait;
}

// Ranks wait in a group with PyTorch ranks whose calls are unknown.
std::optional<CollectiveWait> unknown_wait(const GroupState& group) {
  if (group.unknown.empty() || !group.missing.empty() || group.message) return std::nullopt;
  CollectiveWait wait;
  wait.set_kind(Kind::UNKNOWN);
  wait.set_group(group.name);
  int64_t first = 0;
  for (const Member& member : group.members) {
    if (!member.waits() || !member.calls->has_done()) continue;
    const int64_t at = member.at(0);
    first = first == 0 ? at : std::min(first, at);
    wait.add_waiting(member.rank);
  }
  if (first == 0) return std::nullopt;
  *wait.mutable_call() = describe(group, first);
  std::string states;
  for (const Member& member : group.unknown) {
    wait.add_missing(member.rank);
    if (states.size() < 300) states += state_of(member);
  }
  const std::vector<int> missing(wait.missing().begin(), wait.missing().end());
  const std::vector<int> waiting(wait.waiting().begin(), wait.waiting().end());
  wait.set_line(ranks_text(waiting) + (waiting.size() == 1 ? " waits" : " wait") + " in " +
                call_text(wait.call()) + " of group " + group.name + "; the calls of " +
                ranks_text(missing) + " are unknown" + states);
  return wait;
}

// All ranks are in the same call.
std::optional<CollectiveWait> together(const GroupState& group) {
  if (group.members.size() != group.ranks.size() || group.members.empty()) return std::nullopt;
  const int64_t at = group.members[0].at(0);
  for (const Member& member : group.members) {
    const bool in_it = member.unfinished() && member.calls->has_done() && member.at(0) == at;
    if (!in_it) return std::nullopt;
  }
  const bool any = std::any_of(group.members.begin(), group.members.end(),
                               [](const Member& member) { return member.waits(); });
  if (!any) return std::nullopt;
  CollectiveWait wait;
  wait.set_kind(Kind::TOGETHER);
  wait.set_group(group.name);
  *wait.mutable_call() = describe(group, at);
  std::string states;
  for (const Member& member : group.members) {
    states += state_of(member);
    member.gone() ? wait.add_missing(member.rank) : wait.add_waiting(member.rank);
  }
  wait.set_line("all " + std::to_string(group.ranks.size()) + " ranks are in " +
                call_text(wait.call()) + " of group " + group.name +
                (states.empty() ? ", and none continues" : states));
  return wait;
}

// Kind, size and root, which must be equal; of messages the size.
using Shape = std::tuple<std::string, int64_t, int32_t>;

Shape shape_of(const GroupState& group, const GroupCall& call) {
  if (group.message) return {"", call.size(), -1};
  return {call.kind(), call.size(), call.has_root() ? call.root() : -1};
}

// The first number that stands for different calls.
std::optional<CollectiveWait> mismatch(const GroupState& group) {
  const bool waits = std::any_of(group.members.begin(), group.members.end(),
                                 [](const Member& member) { return member.waits(); });
  if (!waits) return std::nullopt;
  std::map<int64_t, std::map<Shape, std::vector<const Member*>>> by_number;
  for (const Member& member : group.members) {
    if (!member.calls) continue;
    for (const GroupCall& call : member.calls->calls()) {
      by_number[call.sequence()][shape_of(group, call)].push_back(&member);
    }
  }
  for (const auto& [sequence, shapes] : by_number) {
    if (shapes.size() < 2) continue;
    std::vector<std::vector<const Member*>> kinds;
    for (const auto& [shape, members] : shapes) kinds.push_back(members);
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    CollectiveWait wait;
    wait.set_kind(Kind::MISMATCH);
    wait.set_group(group.name);
    *wait.mutable_call() = *call_of(*kinds.back().front(), sequence);
    std::string line;
    for (const auto& members : kinds) {
      const bool last = &members == &kinds.back();
      std::vector<int> ranks;
      for (const Member* member : members) {
        ranks.push_back(member->rank);
        last ? wait.add_waiting(member->rank) : wait.add_missing(member->rank);
      }
      const bool first = line.empty(), others = last && ranks.size() > 1;
      line += (first ? "" : ", ") + (others ? "the others" : ranks_text(ranks));
      if (first) line += ranks.size() == 1 ? " is" : " are";
      const GroupCall& call = *call_of(*members.front(), sequence);
      line += " in " + call_text(call);
      if (call.has_root()) line += " with root " + std::to_string(call.root());
    }
    wait.set_line(line + " of group " + group.name);
    return wait;
  }
  return std::nullopt;
}

}  // namespace

std::string call_text(const GroupCall& call) {
  std::string text = call.kind().empty() ? "call" : call.kind();
  text += " #" + std::to_string(call.sequence());
  if (call.kind().empty()) return text;
  const std::string size = call.size() > 0 ? size_text(call.size()) : "";
  if (size.empty() && call.purpose().empty()) return text;
  const bool both = !size.empty() && !call.purpose().empty();
  return text + " (" + call.purpose() + (both ? ", " : "") + size + ")";
}

std::vector<CollectiveWait> find_collective_waits(const Stacks& all) {
  std::vector<GroupState> groups = groups_of(all);
  std::set<int> blocked;
  for (GroupState& group : groups) {
    find_missing(&group);
    if (!group.missing.empty()) blocked.insert(group.waiting.begin(), group.waiting.end());
    group.unknown_wait = unknown_wait(group);
    if (group.unknown_wait) {
      blocked.insert(group.unknown_wait->waiting().begin(), group.unknown_wait->waiting().end());
    }
  }
  std::vector<CollectiveWait> mismatches, roots, unknown, circles, stuck;
  for (const GroupState& group : groups) {
    if (auto found = mismatch(group)) {
      mismatches.push_back(*std::move(found));
    } else if (!group.missing.empty()) {
      const bool root = std::any_of(group.missing.begin(), group.missing.end(),
                                    [&](int rank) { return !blocked.contains(rank); });
      (root ? roots : circles).push_back(missing_wait(group, blocked, !root));
    } else if (group.unknown_wait) {
      unknown.push_back(*group.unknown_wait);
    } else if (auto in_it = together(group)) {
      stuck.push_back(*std::move(in_it));
    }
  }
  std::vector<CollectiveWait> waits = std::move(mismatches);
  const auto add = [&](std::vector<CollectiveWait>& more) {
    std::stable_sort(more.begin(), more.end(), [](const auto& a, const auto& b) {
      return a.call().size() > b.call().size();
    });
    waits.insert(waits.end(), more.begin(), more.end());
  };
  add(roots);
  add(unknown);
  if (waits.empty()) add(circles);
  if (waits.empty()) add(stuck);
  if (waits.size() > kMaxWaits) waits.resize(kMaxWaits);
  return waits;
}

std::optional<int> rank_waited_for(const std::vector<CollectiveWait>& waits) {
  if (waits.empty() || waits[0].missing_size() != 1) return std::nullopt;
  const bool sure = waits[0].kind() != Kind::CIRCLE && waits[0].kind() != Kind::UNKNOWN;
  if (!sure) return std::nullopt;
  return waits[0].missing(0);
}

std::string waits_text(const std::vector<CollectiveWait>& waits) {
  std::string text;
  for (const CollectiveWait& wait : waits) text += "\n  " + wait.line();
  return text;
}

Json waits_json(const google::protobuf::RepeatedPtrField<CollectiveWait>& waits) {
  Json all = Json::array();
  for (const CollectiveWait& wait : waits) {
    const GroupCall& call = wait.call();
    all.push_back({{"kind", name_of(wait.kind())},
                   {"group", wait.group()},
                   {"operation", call.kind()},
                   {"sequence", call.sequence()},
                   {"for", call.purpose()},
                   {"bytes", call.size()},
                   {"missing", numbers(wait.missing())},
                   {"waiting", numbers(wait.waiting())},
                   {"text", wait.line()}});
  }
  return all;
}

}  // namespace fleet
