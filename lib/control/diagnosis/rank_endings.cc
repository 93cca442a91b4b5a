#include "diagnosis/rank_endings.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/number_text.h"
#include "base/ranges.h"
#include "diagnosis/stacks.h"

namespace fleet {
namespace {

constexpr size_t kMaxEndingLines = 8;

// Ranks with the same key share a line.
using EndingKey = std::tuple<bool, bool, std::string>;  // server, ended, error

struct EndingLine {
  std::vector<int> ranks;
  int64_t longest_ms = 0;
};

std::string line_text(const EndingKey& key, const EndingLine& line) {
  const auto& [server, ended, error] = key;
  const bool many = line.ranks.size() > 1;
  std::string text = (server ? "server" : "rank") + std::string(many ? "s " : " ") +
                     ranges_text(line.ranks) + (many ? " have " : " has ");
  if (!ended) {
    return text + "printed an exception and " + (many ? "have" : "has") + " not ended: " + error;
  }
  text += "ended with 0, " + format_printf("%.3g", static_cast<double>(line.longest_ms) / 1000) +
          " s before";
  return error.empty() ? text : text + "; last error in the log: " + error;
}

}  // namespace

const RankEnding* find_failing(const Stacks& all) {
  for (const RankEnding& one : all.endings()) {
    if (!one.ended()) return &one;
  }
  return nullptr;
}

const RankEnding* find_early_end(const Stacks& all) {
  const RankEnding* first = nullptr;
  int ended = 0;
  for (const RankEnding& one : all.endings()) {
    if (!one.ended() || one.server()) continue;
    ++ended;
    if (!first || one.ago_ms() > first->ago_ms()) first = &one;
  }
  return ended <= rank_count(all) ? first : nullptr;
}

std::string endings_text(const Stacks& all) {
  std::map<EndingKey, EndingLine> lines;
  for (const RankEnding& one : all.endings()) {
    EndingLine& line = lines[{one.server(), one.ended(), one.error()}];
    line.ranks.push_back(one.rank());
    line.longest_ms = std::max(line.longest_ms, one.ago_ms());
  }
  std::string text;
  size_t shown = 0;
  for (auto& [key, line] : lines) {
    if (++shown > kMaxEndingLines) break;
    std::sort(line.ranks.begin(), line.ranks.end());
    text += "\n  " + line_text(key, line);
  }
  return text;
}

Json endings_json(const google::protobuf::RepeatedPtrField<RankEnding>& endings) {
  Json all = Json::array();
  for (const RankEnding& one : endings) {
    all.push_back(
        {{"role", one.server() ? "server" : "trainer"},
         {"rank", one.rank()},
         {"local_rank", one.local_rank()},
         {"node_rank", one.node_rank()},
         {"ended", one.ended()},
         {"ago", one.ended() ? Json(static_cast<double>(one.ago_ms()) / 1000) : Json(nullptr)},
         {"error", one.error()},
         {"log", one.log_path()}});
  }
  return all;
}

}  // namespace fleet
