#include "node/flight_dump.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/pickle.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "observe/collective_log.h"

namespace fleet {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

// PyTorch keeps 2,000 calls unless it is told otherwise. These bound the time that a hostile dump
// takes: its values may refer to each other.
constexpr size_t kMaxEntries = 1 << 16, kMaxFields = 32, kMaxFrames = 32, kMaxSizes = 16;
constexpr size_t kMaxDumpedGroups = 128, kMaxRuns = 64, kMaxText = 256, kMaxRankText = 1 << 20;
constexpr int64_t kMaxRanks = 1 << 16, kMaxCalls = int64_t{1} << 48;
// Calls that are kept after the first that is not done: a host issues them a whole step ahead.
constexpr int64_t kDumpedCallsBefore = 2, kDumpedCallsAfter = 125;
constexpr size_t kMaxShown = 64;
constexpr std::string_view kDefaultGroup = "default_pg";

// PyTorch's names (c10::toString(ScalarType)); 0: unknown.
int64_t size_of(std::string_view type) {
  static const std::map<std::string_view, int64_t> kSizes = {
      {"Byte", 1}, {"Char", 1},     {"Bool", 1},         {"Short", 2},
      {"Half", 2}, {"BFloat16", 2}, {"Int", 4},          {"Float", 4},
      {"Long", 8}, {"Double", 8},   {"ComplexFloat", 8}, {"ComplexDouble", 16}};
  const auto found = kSizes.find(type);
  if (found != kSizes.end()) return found->second;
  return type.starts_with("Float8") ? 1 : 0;
}

// Operations whose input has the same size on each rank. Others may differ without being wrong.
bool is_even(std::string_view operation) {
  for (const char* even :
       {"all_reduce", "broadcast", "reduce", "_all_gather_base", "_reduce_scatter_base",
        "all_gather_into_tensor", "reduce_scatter_tensor"}) {
    if (operation == even) return true;
  }
  return false;
}

struct Call {
  std::string operation, where;
  int64_t bytes = 0, created = 0;  // created: unix ns
  int64_t batch = 0;               // messages that were issued as one have the same number
  GroupCall::State state = GroupCall::ISSUED;
};

// The calls of a group, or its messages in one direction, by number.
struct Numbered {
  std::map<int64_t, Call> calls;
  int64_t entered() const { return calls.empty() ? 0 : calls.rbegin()->first; }
  int64_t done() const {
    for (const auto& [number, call] : calls) {
      if (call.state != GroupCall::DONE) return number - 1;
    }
    return entered();
  }
};

struct Group {
  std::string label;       // for the user
  std::vector<int> ranks;  // the job's, in the order of the group; empty: unknown
  Numbered together;
  std::map<std::pair<int, int>, Numbered> messages;  // by their ends, ranks of the group
  std::map<int64_t, GroupCall::State> batches;       // states of messages
};

// The values of a dump, each of the expected kind or empty.
class Values {
 public:
  Values(std::string_view bytes, const std::string& path)
      : pickle_(path, {.bytes = kMaxFlightDump, .values = 8 << 20}) {
    pickle_.read(bytes);
  }

  Value root() const { return pickle_.root(); }
  size_t size() const { return pickle_.size(); }
  std::optional<Value> field(Value dict, std::string_view key) const {
    if (dict.kind != Kind::kDict) return std::nullopt;
    const std::vector<Value>& items = pickle_.dict(dict);
    for (size_t i = 0; i + 1 < std::min(items.size(), 2 * kMaxFields); i += 2) {
      if (items[i].kind == Kind::kText && pickle_.text(items[i]) == key) return items[i + 1];
    }
    return std::nullopt;
  }
  std::string_view text(std::optional<Value> value, size_t most = kMaxText) const {
    if (!value || value->kind != Kind::kText) return {};
    return std::string_view(pickle_.text(*value)).substr(0, most);
  }
  std::span<const Value> items(std::optional<Value> value, size_t most) const {
    if (!value || (value->kind != Kind::kList && value->kind != Kind::kDict)) return {};
    const std::vector<Value>& all = pickle_.list(*value);
    return std::span(all).first(std::min(all.size(), most));
  }

 private:
  Pickle pickle_;
};

std::optional<int64_t> integer(std::optional<Value> value) {
  return value && value->kind == Kind::kInteger ? std::optional(value->number) : std::nullopt;
}

bool is_true(std::optional<Value> value) {
  return value && value->kind == Kind::kBool && value->number != 0;
}

// "[0, 1, 2]"
std::vector<int> ranks_of(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return {};
  std::vector<int> ranks;
  for (const std::string& part : split(text.substr(1, text.size() - 2), ',')) {
    long long rank = 0;
    if (!parse_int(trim(part), &rank) || rank < 0 || rank >= kMaxRanks) return {};
    ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// "nccl:send 0->1" without the backend and the ends: "send".
std::string operation_of(std::string_view name) {
  name.remove_prefix(std::min(name.find(':') + 1, name.size()));
  return shown_name(name.substr(0, name.find(' ')), kMaxShown);
}

// The ends of "nccl:send 0->1" or "nccl:recv 1<-0", from and to.
std::optional<std::pair<int, int>> ends_of(std::string_view name) {
  const size_t arrow = name.find_first_of("<-");
  const size_t blank = name.rfind(' ', arrow);
  if (arrow == std::string_view::npos || blank == std::string_view::npos) return std::nullopt;
  long long own = 0, other = 0;
  if (!parse_int(name.substr(blank + 1, arrow - blank - 1), &own) ||
      !parse_int(name.substr(std::min(arrow + 2, name.size())), &other) || own < 0 || other < 0 ||
      std::max(own, other) >= kMaxRanks) {
    return std::nullopt;
  }
  const std::pair ends(static_cast<int>(own), static_cast<int>(other));
  return name[arrow] == '<' ? std::pair(ends.second, ends.first) : ends;
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& path, const FlightRank& of)
      : values_(bytes, path), of_(of) {
    const std::string_view version = values_.text(values_.field(values_.root(), "version"));
    if (!version.starts_with("2.") || values_.size() != bytes.size()) {
      throw Error(ErrorCode::kUsage, "is not a dump of PyTorch's flight recorder (version 2)",
                  path);
    }
    read_groups();
    read_entries();
  }

  RankCollectives calls() {
    // The group of all ranks of the job, even where PyTorch has not recorded it, and where its
    // calls are too old.
    Group& all_ranks = groups_[{"0", std::string(kDefaultGroup)}];
    if (all_ranks.ranks.empty()) {
      for (int rank = 0; rank < of_.world_size; ++rank) all_ranks.ranks.push_back(rank);
    }
    RankCollectives all;
    all.set_rank(of_.rank);
    std::map<std::pair<std::string, std::vector<int>>, int> ordinals;
    for (auto& [key, group] : groups_) {
      const auto& [name, description] = key;
      const bool described = !description.empty() && description != "undefined";
      group.label = shown_name(described ? description : name, kMaxShown);
      const int ordinal = ordinals[{group.label, group.ranks}]++;
      add(group, group.ranks, ordinal, group.together, &all);
      for (const auto& [ends, messages] : group.messages) {
        const auto [from, to] = ends;
        if (std::max(from, to) >= static_cast<int>(group.ranks.size()) || !complete_) continue;
        const int before = all.groups_size();
        add(group, {group.ranks[from], group.ranks[to]}, ordinal, messages, &all);
        if (all.groups_size() > before) all.mutable_groups(before)->set_message(true);
      }
    }
    return all;
  }

 private:
  void read_groups() {
    const auto config =
        values_.items(values_.field(values_.root(), "pg_config"), 2 * kMaxDumpedGroups);
    for (size_t i = 1; i < config.size(); i += 2) {
      const std::string name(values_.text(values_.field(config[i], "name")));
      if (name.empty()) continue;  // Gloo of PyTorch 2.15 has one entry for all of its groups
      const std::string description(values_.text(values_.field(config[i], "desc")));
      groups_[{name, description}].ranks =
          ranks_of(values_.text(values_.field(config[i], "ranks"), kMaxRankText));
    }
  }
  void read_entries() {
    auto entries = values_.items(values_.field(values_.root(), "entries"), SIZE_MAX);
    entries = entries.last(std::min(entries.size(), kMaxEntries));  // the newest
    complete_ = entries.size() < kMaxEntries;
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto record = integer(values_.field(entries[i], "record_id"));
      if (record != static_cast<int64_t>(i)) complete_ = false;
    }
    for (const Value& entry : entries) read_entry(entry);
    for (auto& [key, group] : groups_) {
      for (auto& [ends, messages] : group.messages) {
        for (auto& [number, call] : messages.calls) {
          const auto batch = group.batches.find(call.batch);
          if (batch != group.batches.end()) call.state = batch->second;
        }
      }
    }
  }
  void read_entry(Value entry) {
    const auto number = integer(values_.field(entry, "collective_seq_id"));
    if (!number || *number < 0 || *number > kMaxCalls) return;
    Call call = call_of(entry);
    Group& group = group_of(entry);
    // Of calls that were issued as one, the last entry stands for all.
    if (!is_true(values_.field(entry, "is_p2p"))) {
      if (*number > 0) group.together.calls[*number] = std::move(call);
      return;
    }
    const auto ends = ends_of(values_.text(values_.field(entry, "profiling_name")));
    if (!ends) {
      group.batches[call.batch] = call.state;
      return;
    }
    // Numbers of a direction, which PyTorch does not count: only a dump with all of them has them.
    std::map<int64_t, Call>& messages = group.messages[*ends].calls;
    if (complete_) messages.emplace(static_cast<int64_t>(messages.size()) + 1, std::move(call));
  }
  Group& group_of(Value entry) {
    std::string name, description;
    const auto names = values_.items(values_.field(entry, "process_group"), 2);
    if (names.size() == 2) name = values_.text(names[0]), description = values_.text(names[1]);
    return groups_[{name, description}];
  }
  Call call_of(Value entry) const {
    const std::string_view name = values_.text(values_.field(entry, "profiling_name"));
    const std::string_view state = values_.text(values_.field(entry, "state"));
    Call call;
    call.operation = operation_of(name);
    call.where = where(entry);
    if (is_even(call.operation)) call.bytes = bytes_of(entry);
    call.created = integer(values_.field(entry, "time_created_ns")).value_or(0);
    call.batch = integer(values_.field(entry, "p2p_seq_id")).value_or(0);
    if (state == "started") call.state = GroupCall::STARTED;
    // Without events of a device (Gloo), a call has no state; it retires when it is done.
    const bool retired = name.starts_with("gloo:") && is_true(values_.field(entry, "retired"));
    if (state == "completed" || retired) call.state = GroupCall::DONE;
    return call;
  }
  // Bytes of the entry's input.
  int64_t bytes_of(Value entry) const {
    const auto sizes = values_.items(values_.field(entry, "input_sizes"), kMaxSizes);
    const auto types = values_.items(values_.field(entry, "input_dtypes"), kMaxSizes);
    double bytes = 0;
    for (size_t i = 0; i < std::min(sizes.size(), types.size()); ++i) {
      auto tensor = static_cast<double>(size_of(values_.text(types[i])));
      for (const Value& size : values_.items(sizes[i], kMaxSizes)) {
        tensor *= static_cast<double>(std::max<int64_t>(integer(size).value_or(0), 0));
      }
      bytes += tensor;
    }
    return bytes < 1e15 ? static_cast<int64_t>(bytes) : 0;
  }
  // "train.py:44": the innermost line that is not PyTorch's own.
  std::string where(Value entry) const {
    const std::optional<Value> frames = values_.field(entry, "frames");
    for (const Value& frame : values_.items(frames, kMaxFrames)) {
      const std::string_view file = values_.text(values_.field(frame, "filename"), 4096);
      const auto line = integer(values_.field(frame, "line"));
      if (!file.ends_with(".py") || file.find("/torch/") != std::string_view::npos || !line)
        continue;
      return shown_name(file.substr(file.rfind('/') + 1), kMaxShown) + ":" + std::to_string(*line);
    }
    return {};
  }
  void add(const Group& group, const std::vector<int>& ranks, int ordinal, const Numbered& numbered,
           RankCollectives* all) const {
    const std::vector<RankRun> runs = runs_of(ranks);
    if (runs.empty() || runs.size() > kMaxRuns || all->groups_size() >= int{kMaxDumpedGroups})
      return;
    if (numbered.calls.empty() && complete_) return;  // as a rank that does not have the group yet
    GroupCalls& calls = *all->add_groups();
    calls.set_name(group.label);
    for (const RankRun& run : runs) {
      for (const int part : {run.first, run.step, run.count}) calls.add_ranks(part);
    }
    calls.set_ordinal(ordinal);
    calls.set_ahead(true);
    calls.set_unknown(numbered.calls.empty());
    calls.set_entered(numbered.entered());
    calls.set_done(numbered.done());
    for (const auto& [number, call] : numbered.calls) {
      const bool last = number > numbered.entered() - kDumpedCallsBefore;
      if (number == calls.done() + 1) {
        const int64_t waited = call.created > 0 ? (of_.unix_time - call.created) / 1'000'000 : 0;
        calls.set_waiting_ms(std::max<int64_t>(waited, 0));
      }
      if (number <= calls.done() - kDumpedCallsBefore ||
          (number > calls.done() + kDumpedCallsAfter && !last)) {
        continue;
      }
      GroupCall& one = *calls.add_calls();
      one.set_sequence(number);
      one.set_kind(call.operation);
      one.set_size(call.bytes);
      one.set_purpose(call.where);
      one.set_state(call.state);
    }
  }

  const Values values_;
  const FlightRank of_;
  std::map<std::pair<std::string, std::string>, Group> groups_;  // by name and description
  bool complete_ = false;  // it has all calls since the program's start
};

}  // namespace

RankCollectives calls_of_flight_dump(std::string_view bytes, const std::string& path,
                                     const FlightRank& of) {
  return Reader(bytes, path, of).calls();
}

}  // namespace fleet
