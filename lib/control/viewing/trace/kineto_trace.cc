#include <algorithm>
#include <climits>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/home_folder.h"
#include "base/json.h"
#include "base/text.h"
#include "node/realtime_history.h"
#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

[[noreturn]] void refuse(const std::string& what, const MergedFile& file, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, file.path, next);
}

// Process and thread; Kineto writes both as numbers or texts ("Spans").
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? std::to_string(value.get<int64_t>()) : "";
}
std::string text_at(const Json& event, const char* key) {
  const Json* found = event.find(key);
  return found ? text_of(*found) : "";
}
std::string thread_of(const Json& event) {
  return text_at(event, "pid") + "/" + text_at(event, "tid");
}

double number_of(const Json& event, const char* key) {
  const Json* found = event.find(key);
  return found && found->is_number() ? found->get<double>() : -1;
}

RankTrace* rank_called(JobTrace* trace, int rank) {
  const auto found = std::ranges::find_if(trace->ranks, [&](const RankTrace& one) {
    return !one.rank.server() && one.rank.rank() == rank;
  });
  return found == trace->ranks.end() ? nullptr : &*found;
}

RankTrace& owner(const Json& file, const MergedFile& given, JobTrace* trace) {
  std::optional<int> rank = given.rank;
  const Json* info = file.find("distributedInfo");
  const Json* number = info ? info->find("rank") : nullptr;
  if (!rank && number && number->is_number_integer()) rank = number->get<int>();
  if (rank) {
    if (RankTrace* found = rank_called(trace, *rank)) return *found;
    refuse("rank " + std::to_string(*rank) + " is not in the trace", given,
           "name another one: --merge RANK=FILE");
  }
  std::set<std::string> processes;
  for (const Json& event : file.at("traceEvents")) {
    if (event.is_object()) processes.insert(text_at(event, "pid"));
  }
  std::vector<RankTrace*> owners;
  for (RankTrace& one : trace->ranks) {
    if (processes.contains(std::to_string(one.rank.pid()))) owners.push_back(&one);
  }
  if (owners.size() == 1) return *owners[0];
  refuse("it does not say which rank it is of", given, "name it: --merge RANK=FILE");
}

class Merger {
 public:
  Merger(const Json& file, const MergedFile& given, RankTrace* rank, const TracedNode& node)
      : file_(file), given_(given), rank_(*rank) {
    for (const wire::RealtimeOffset& offset : node.realtime) offsets_.push_back(&offset);
    if (offsets_.empty()) {
      refuse("the clocks of node " + std::to_string(node.node_rank) + " are not known", given,
             "trace again");
    }
    const Json* base = file.find("baseTimeNanoseconds");
    if (base && base->is_number_integer()) base_ns_ = base->get<int64_t>();
    for (const auto& [number, name] : rank_.names) next_name_ = std::max(next_name_, number + 1);
    for (const auto& [number, name] : rank_.tracks) next_track_ = std::max(next_track_, number + 1);
  }

  size_t run() {
    for (const Json& event : file_.at("traceEvents")) {
      if (event.is_object() && text_at(event, "ph") == "M") note_thread(event);
    }
    size_t count = 0;
    for (const Json& event : file_.at("traceEvents")) {
      if (event.is_object() && text_at(event, "ph") == "X" && add(event)) ++count;
    }
    return count;
  }

 private:
  void note_thread(const Json& event) {
    if (text_at(event, "name") != "thread_name") return;
    const Json* arguments = event.find("args");
    if (arguments && !arguments->is_object()) return;
    threads_[thread_of(event)] = arguments ? text_at(*arguments, "name") : "";
  }

  bool add(const Json& event) {
    const double at_us = number_of(event, "ts"), for_us = number_of(event, "dur");
    if (!(at_us >= 0) || !(for_us >= 0) || at_us > 4e15 || for_us > 4e15) return false;
    const int64_t begin = base_ns_ + std::llround(at_us * 1e3);
    const auto own = to_monotonic(offsets_, begin);
    if (!own) return false;
    rank_.records.push_back({.begin_ns = own->ns,
                             .end_ns = own->ns + std::llround(for_us * 1e3),
                             .value = 0,
                             .name = name_number(event),
                             .track = track_number(thread_of(event))});
    return true;
  }

  uint32_t name_number(const Json& event) {
    const std::pair key(text_at(event, "cat"), text_at(event, "name"));
    const auto [at, added] = names_.try_emplace(key, next_name_);
    if (added) {
      rank_.names[next_name_++] = {.category = key.first.empty() ? "merged" : key.first,
                                   .name = key.second,
                                   .detail = {},
                                   .key = {}};
    }
    return at->second;
  }

  uint32_t track_number(const std::string& thread) {
    const auto [at, added] = tracks_.try_emplace(thread, next_track_);
    if (added) {
      const auto name = threads_.find(thread);
      rank_.tracks[next_track_++] = "merged: " + (name == threads_.end() ? thread : name->second);
    }
    return at->second;
  }

  const Json& file_;
  const MergedFile& given_;
  RankTrace& rank_;
  std::vector<const wire::RealtimeOffset*> offsets_;
  int64_t base_ns_ = 0;
  uint32_t next_name_ = 0, next_track_ = 0;
  std::map<std::string, std::string> threads_;
  std::map<std::pair<std::string, std::string>, uint32_t> names_;
  std::map<std::string, uint32_t> tracks_;
};

}  // namespace

MergedFile merged_file(const std::string& given) {
  const size_t equals = given.find('=');
  long long rank = 0;
  const bool named = equals != std::string::npos && parse_int(given.substr(0, equals), &rank) &&
                     rank >= 0 && rank <= INT_MAX;
  if (!named) return {std::nullopt, expand_home(given, "--merge")};
  return {static_cast<int>(rank), expand_home(given.substr(equals + 1), "--merge")};
}

size_t merge_chrome_trace(const std::string& json, const MergedFile& file, JobTrace* trace) {
  if (json.starts_with("\x1f\x8b")) refuse("it is compressed", file, "gunzip it first");
  const auto parsed = Json::try_parse(json);
  const Json* events = parsed ? parsed->find("traceEvents") : nullptr;
  if (!events || !events->is_array()) {
    refuse("it is no Chrome trace (JSON with traceEvents)", file,
           "give a file that torch.profiler's export_chrome_trace() wrote");
  }
  RankTrace& rank = owner(*parsed, file, trace);
  return Merger(*parsed, file, &rank, trace->nodes.at(rank.node_rank)).run();
}

}  // namespace fleet
